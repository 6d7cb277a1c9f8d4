"""Kopf's side of the house: what is watched, and how Kopf behaves."""
