"""Find what a pipeline names by id on this machine: components, data, environments and models."""
