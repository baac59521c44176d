"""What the programs of several components share. It is copied beside the code that imports it, as the runtime is."""
