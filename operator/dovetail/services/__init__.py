"""The day's work: observe, decide, write."""
