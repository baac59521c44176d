"""Ranks that are forked from a process of their step's interpreter that has imported what they import. What runs in
that process imports the standard library only, besides those modules."""
