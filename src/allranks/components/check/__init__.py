"""What Azure ML's designer shows of a component, and rules that hold a component to it.

Each rule is a small function over a `Subject` (a spec as its file says it, with the line of each key); `rules.RULES` is
the table of them.
"""
