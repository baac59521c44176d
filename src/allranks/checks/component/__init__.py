"""Check how Azure ML's designer displays a component.

Each rule is a small function of a `Subject` (a spec as written, with the line of each key); `rules.RULES` is the table
of rules.
"""
