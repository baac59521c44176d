"""Observe a run while it is executed. Observers may read the record, but must not change it."""

from __future__ import annotations

from allranks.history.records import RunRecord, StepRecord


class Observer:
    """Receives every change of a run on the engine's thread, and passes it to the observers within it.

    A call must be fast, because the engine waits for it.
    """

    within: tuple[Observer, ...] = ()

    def started(self, run: RunRecord) -> None:
        """Called when the run was created, before any step starts."""
        for observer in self.within:
            observer.started(run)

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        """Called when the status of the step or of one of its ranks, or its attempt, has changed."""
        for observer in self.within:
            observer.changed(run, step)

    def progressed(self, run: RunRecord, step: StepRecord) -> None:
        """Called when the step reported progress or metrics."""
        for observer in self.within:
            observer.progressed(run, step)

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        """Called for a note to the user: a result was reused, an abort of a rank at exit was ignored, ..."""
        for observer in self.within:
            observer.noted(run, step, text)

    def announced(self, run: RunRecord, step: StepRecord, text: str) -> None:
        """Called for a message to the user that concerns only this moment: the ranks of a step are silent."""
        for observer in self.within:
            observer.announced(run, step, text)

    def ended(self, run: RunRecord) -> None:
        """Called when the run has ended: Completed, Failed or Canceled."""
        for observer in self.within:
            observer.ended(run)
