"""Dovetail gives pods devices that belong together."""
