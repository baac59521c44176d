"""Who is told while a run goes on. The record is the engine's own: read it, do not change it."""

from __future__ import annotations

from allranks.runs.records import RunRecord, StepRecord


class Observer:
    """Is told of every change of a run, on the engine's thread; each method does nothing unless a subclass says
    otherwise.

    A call must be quick: the engine waits for it.
    """

    def started(self, run: RunRecord) -> None:
        """The run exists; no step has started."""

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        """The state of the step or of one of its ranks is another, or its attempt is."""

    def progressed(self, run: RunRecord, step: StepRecord) -> None:
        """The step reported progress or metrics."""

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        """Something that a user should know: a result was reused, a rank's abort at exit was forgiven, ..."""

    def ended(self, run: RunRecord) -> None:
        """The run is over: Completed, Failed or Canceled."""
