"""Observe a run while it is executed. Observers may read the record, but must not change it."""

from __future__ import annotations

from collections.abc import Sequence

from allranks.history.records import RunRecord, StepRecord


class Observer:
    """Receives every change of a run on the engine's thread. Every method does nothing by default.

    A call must be fast, because the engine waits for it.
    """

    def started(self, run: RunRecord) -> None:
        """Called when the run was created, before any step starts."""

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        """Called when the status of the step or of one of its ranks, or its attempt, has changed."""

    def progressed(self, run: RunRecord, step: StepRecord) -> None:
        """Called when the step reported progress or metrics."""

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        """Called for a note to the user: a result was reused, an abort of a rank at exit was ignored, ..."""

    def announced(self, run: RunRecord, step: StepRecord, text: str) -> None:
        """Called for a message to the user that concerns only this moment: the ranks of a step are silent."""

    def ended(self, run: RunRecord) -> None:
        """Called when the run has ended: Completed, Failed or Canceled."""


class Observers(Observer):
    """Pass every change to several observers, in their order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def started(self, run: RunRecord) -> None:
        for observer in self._observers:
            observer.started(run)

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        for observer in self._observers:
            observer.changed(run, step)

    def progressed(self, run: RunRecord, step: StepRecord) -> None:
        for observer in self._observers:
            observer.progressed(run, step)

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        for observer in self._observers:
            observer.noted(run, step, text)

    def announced(self, run: RunRecord, step: StepRecord, text: str) -> None:
        for observer in self._observers:
            observer.announced(run, step, text)

    def ended(self, run: RunRecord) -> None:
        for observer in self._observers:
            observer.ended(run)
