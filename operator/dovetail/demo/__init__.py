"""The demo: the real operator against an embedded cluster, told as it happens and checked at the end."""
