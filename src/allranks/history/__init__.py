"""What happened: the records of runs, their store, and their pages."""
