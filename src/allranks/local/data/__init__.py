"""The data of a run that is not on this machine: download it into a cache, upload outputs; and samples of data."""
