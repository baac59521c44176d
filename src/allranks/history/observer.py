"""Observe a run while it executes. Observers may read the record, but must not change it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from allranks.history.records import RunRecord, StepRecord


class Observer(AbstractContextManager[Any]):
    """Receives every change of a run on the engine's thread, and passes it to the observers within it.

    Methods must return quickly, because the engine waits for them. As a context manager, it frees what it holds.
    """

    within: tuple[Observer, ...] = ()

    def __exit__(self, *_: object) -> None:
        return None

    def started(self, run: RunRecord) -> None:
        """Called after the run was created, before any step starts."""
        for observer in self.within:
            observer.started(run)

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        """Called when the status of a step, of one of its ranks, or its attempt has changed."""
        for observer in self.within:
            observer.changed(run, step)

    def progressed(self, run: RunRecord, step: StepRecord) -> None:
        """Called when the step reported progress or metrics."""
        for observer in self.within:
            observer.progressed(run, step)

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        """Called for a note to the user, such as that a result was reused."""
        for observer in self.within:
            observer.noted(run, step, text)

    def announced(self, run: RunRecord, step: StepRecord, text: str) -> None:
        """Called for a message to the user that is not recorded, such as that the ranks of a step are silent."""
        for observer in self.within:
            observer.announced(run, step, text)

    def ended(self, run: RunRecord) -> None:
        """Called when the run has ended."""
        for observer in self.within:
            observer.ended(run)
