"""Check that a training survives evictions: compare a run with evictions with one without."""
