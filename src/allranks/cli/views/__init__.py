"""What commands print: trees, plans, summaries, tables."""
