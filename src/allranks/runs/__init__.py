"""What happened: the records of runs, the store that holds them, and how they are shown."""
