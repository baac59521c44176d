"""The code that depends on internals of azure-ai-ml."""
