"""One module per command, named like the command."""
