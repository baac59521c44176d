"""Stop one instance of a run before a step starts on it: it is there, but it never starts the step's processes."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import psutil

from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.plan.graph import Step

EARLIER = "earlier"


def earlier_step(instance_count: int) -> Step:
    """Return the step that runs on the instances first. Its agents then wait for the next step."""
    return Step(EARLIER, "true", instance_count=instance_count)


class StoppedInstance(Observer):
    """Stop the last instance of a run in this process at the end of `earlier_step`. The run must be cold: agents are
    then shared by all steps.

    stopped: its agent
    """

    def __init__(self) -> None:
        self.stopped: psutil.Process | None = None

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        if step.name == EARLIER and step.status is Status.COMPLETED and self.stopped is None:
            self.stopped = _agents()[-1]
            self.stopped.send_signal(signal.SIGSTOP)


def _agents() -> Sequence[psutil.Process]:
    """Return the agents of this process's run, in the order of their instances, which is that of their start."""
    agents = [process for process in psutil.Process().children(recursive=True) if _is_agent(process)]
    return sorted(agents, key=lambda process: process.pid)


def _is_agent(process: psutil.Process) -> bool:
    try:
        return "allranks.local.supervisor" in " ".join(process.cmdline()) and not process.children()
    except psutil.NoSuchProcess:  # a rank of the earlier step, which ends meanwhile
        return False
