"""Start every launch of every stack on this machine, and check what its ranks compute."""
