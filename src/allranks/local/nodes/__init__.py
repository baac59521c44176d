"""Runners for the nodes of a graph, one per kind. A new kind is one module and one row of the table in `runners`."""
