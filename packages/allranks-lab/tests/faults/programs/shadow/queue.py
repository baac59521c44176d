"""The queue of the team's experiments."""

experiments = []
