"""New projects, and the job of a script of one's own, without a file that describes it."""
