"""Counting the backward passes that make a step."""

from __future__ import annotations


class Accumulation:
    """Where a training stands among the backward passes of a step."""

    def __init__(self, passes: int) -> None:
        self.passes = passes
        self._done = 0

    @property
    def is_last(self) -> bool:
        """Whether the pass that comes completes a step."""
        return self._done == self.passes - 1

    def count(self) -> bool:
        """Count a pass as done; True where it completed a step."""
        complete = self.is_last
        self._done = 0 if complete else self._done + 1
        return complete
