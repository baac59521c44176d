"""How the nodes of a graph run: one runner a kind. A new kind is one module and one row of the table in `runners`."""
