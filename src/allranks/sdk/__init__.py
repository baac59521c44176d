"""Everything that knows the inside of azure-ai-ml."""
