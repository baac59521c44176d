"""Check everything that a plan requires to run on this machine."""

from __future__ import annotations

from allranks.errors import Problem
from allranks.local import machine
from allranks.plan.check import check
from allranks.plan.graph import Plan


def problems(plan: Plan, *, track: bool = True) -> list[Problem]:
    """Return everything that prevents the plan from running: problems of the plan itself, of this machine, and, without
    MLflow (`track`), of steps that use its model registry."""
    return [*check(plan), *machine.problems(plan), *([] if track else machine.untracked(plan))]
