"""The rules of `allranks check`, in tables by what they look at: a plan, a component, an environment.

A rule is one function, which yields what it finds, and one row of a table, which docs/checks.md lists.
"""
