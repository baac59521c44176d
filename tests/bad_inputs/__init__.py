"""What users get wrong, as tables: the files and the state, the command, its exit code, and what its message says."""
