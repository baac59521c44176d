"""Count the backward passes of an optimizer step."""

from __future__ import annotations

from torch import Tensor


class Accumulation:
    """Counter of the backward passes in the current optimizer step. passes: backward passes per step."""

    def __init__(self, passes: int) -> None:
        self.passes = passes
        self._done = 0

    @property
    def is_last(self) -> bool:
        """Whether the next backward pass completes a step."""
        return self._done == self.passes - 1

    def share(self, loss: Tensor) -> Tensor:
        """Return the loss divided by the number of backward passes per step."""
        # A division by 1 would be an operation in both passes.
        return loss if self.passes == 1 else loss / self.passes

    def count(self) -> bool:
        """Count a backward pass. Return True if it completed a step."""
        complete = self.is_last
        self._done = 0 if complete else self._done + 1
        return complete

    def reset(self) -> None:
        """Begin a step anew."""
        self._done = 0
