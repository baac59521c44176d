"""Records of runs, the store that holds them, and how they are displayed."""
