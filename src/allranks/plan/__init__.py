"""The compiled pipeline: a graph of plain data, read by `reader`, checked by `check`."""
