"""What a pipeline names and this machine may have: components, data, environments and models by their ids."""
