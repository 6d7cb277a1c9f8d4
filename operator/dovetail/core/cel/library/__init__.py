"""The functions of the DRA device environment, a library a module."""
