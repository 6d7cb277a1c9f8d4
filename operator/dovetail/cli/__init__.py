"""The doors: one module per command, loaded when the command is used."""
