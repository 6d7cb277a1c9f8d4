"""The doors: the commands of dovetail."""
