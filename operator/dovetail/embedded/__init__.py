"""A small API server in this process, for the demo and for fast tests."""
