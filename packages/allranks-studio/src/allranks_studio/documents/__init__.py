"""A pipeline's file as a document: its graph, and edits of the graph as patches of the text."""
