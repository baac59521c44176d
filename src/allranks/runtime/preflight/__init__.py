"""Before the first step: what would go wrong on some rank of a job is found on all of them, and told in one table."""
