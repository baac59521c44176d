"""The output of commands: trees, plans, summaries, tables."""
