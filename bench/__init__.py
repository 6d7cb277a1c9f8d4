"""Measurements of the whole and of parts; each is a command that says its figures and judges them."""
