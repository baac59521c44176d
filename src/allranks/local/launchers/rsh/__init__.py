"""The programs that a launcher needs on the emulated instances: a way into each, and what stands between mpirun and a
rank. Like the supervisor they import the standard library alone."""
