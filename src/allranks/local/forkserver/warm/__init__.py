"""Keep processes that have imported packages, and lend starters to the runs of a workspace."""
