"""Fork ranks from a process of their step's interpreter that has already imported their modules. Code that runs in that
process imports only the standard library besides those modules."""
