"""The context that all parts of one run share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allranks.history.recorder import RunRecorder
from allranks.history.records import RunRecord
from allranks.local import gpus, interpreters
from allranks.local.options import Options
from allranks.local.selection import Modes
from allranks.plan.graph import Plan, Step
from allranks.workspace import Workspace


@dataclass(frozen=True, eq=False)
class RunContext:
    """A run, and how it is executed.

    run:     its record, with the nodes of an earlier execution if the run is resumed
    gpus:    the GPUs of this machine that the engine may use
    modes:   the mode of each node; by default, all run
    origin:  the run whose results the steps in mode REUSE get; None: any run with a result for the same code and
             inputs
    earlier: the run as it was before it continued with the latest code
    """

    plan: Plan
    run: RunRecord
    workspace: Workspace
    options: Options
    recorder: RunRecorder
    gpus: Sequence[str] = ()
    modes: Modes = field(default_factory=Modes)
    origin: RunRecord | None = None
    earlier: RunRecord | None = None

    def gpus_of(self, step: Step) -> int:
        """Return the number of GPUs that a step uses exclusively."""
        return gpus.exclusive(step, self.options.gpus, self.gpus)

    def interpreter_of(self, step: Step) -> Path:
        """Return the Python interpreter of a step's processes."""
        return interpreters.find(step.environment, self.plan.source)

    def is_cold(self, step: Step) -> bool:
        """Return whether the ranks of a step start as new processes. Old interpreters have no fork server."""
        return self.options.cold or not interpreters.runs_fork_server(self.interpreter_of(step))
