"""What the Python code of a step imports, and whether the interpreter of the step has it. Nothing is executed."""
