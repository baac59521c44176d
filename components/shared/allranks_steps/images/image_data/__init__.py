"""Labelled images in three forms: prepared arrays, folders of image files, and WebDataset shards."""
