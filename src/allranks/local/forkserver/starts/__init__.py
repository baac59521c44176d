"""How a step's ranks start: which command is a Python program, and what a starter imports before it forks them."""
