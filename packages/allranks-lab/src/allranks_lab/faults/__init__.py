"""Fault injection: end, stop or slow down ranks and instances of a run, as `--fault` requests it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from allranks_lab.faults.faults import read

if TYPE_CHECKING:
    from allranks.errors import Problem
    from allranks.history.recorder import RunRecorder
    from allranks.history.records import RunRecord
    from allranks.local.instances.instance import InstanceKind
    from allranks.local.instances.supervisor import Supervisor
    from allranks.plan.graph import Plan
    from allranks_lab.faults.injection import Injector

RECORD = "record-steps"
"""Used like a fault: each rank records its training steps, as for `allranks rehearse`."""


class Faults:
    """The faults of a run, as the engine uses them.

    texts: in the syntax of `--fault`, or RECORD. Raise InputError for a text that is not a fault
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text for text in texts if text != RECORD]
        self._records = RECORD in texts
        for text in self._texts:
            read(text)

    def problems(self, plan: Plan, kind: InstanceKind) -> list[Problem]:
        """Return a problem for each fault that instances of this kind cannot have. Raise InputError for a fault that
        cannot happen in any step of the plan."""
        from allranks_lab.faults import targets

        return targets.problems(self._texts, plan, kind)

    def injector(self, plan: Plan, run: RunRecord, recorder: RunRecorder, supervisor: Supervisor) -> Injector:
        """Return the injector of a run."""
        from allranks_lab.faults import targets
        from allranks_lab.faults.injection import Injector

        faults = targets.resolve(self._texts, plan)
        return Injector(faults, run, recorder, supervisor, records=self._records)
