"""Whether a training survives evictions: a run without any is compared with one of the same code that had some."""
