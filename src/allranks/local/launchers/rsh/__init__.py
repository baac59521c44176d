"""Programs that mpirun needs on the emulated instances: an rsh server, its client, and a wrapper that starts a rank.
Like the supervisor, they import the standard library only."""
