"""Launches of the same training file: by allranks and by its peers. Each returns what the ranks have written."""
