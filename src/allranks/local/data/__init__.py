"""Remote data of a run: download it into a cache, upload outputs, and make samples of data."""
