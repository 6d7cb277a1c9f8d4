"""The day's work: observe the cluster, decide, write."""
