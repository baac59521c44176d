"""What runs inside a starter: a process of a step's interpreter that has imported modules, from which agents and their
ranks are forked. It imports the standard library only, besides those modules."""
