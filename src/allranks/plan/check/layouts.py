"""Check the numbers of instances and processes of a step, and its limits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from allranks.contract import produce
from allranks.errors import Problem
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield impossible counts and limits."""
    for problem in produce.problems(step.distribution, step.instance_count):
        yield Problem(scope.key(step, problem.where), problem.found, problem.expected, problem.fix)
    if step.timeout is not None and not (math.isfinite(step.timeout) and step.timeout > 0):
        yield Problem(scope.key(step, "limits.timeout"), f"{step.timeout:g}", "more than 0 seconds")
    if step.shm_size <= 0:
        yield Problem(scope.key(step, "resources.shm_size"), str(step.shm_size), "a size such as 2g")
