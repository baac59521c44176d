"""How a step is spread over instances and processes, and what it is allowed to use."""

from __future__ import annotations

import math
from collections.abc import Iterator

from allranks.contract import distributions
from allranks.errors import Problem
from allranks.local.check import place
from allranks.local.launchers import LAUNCHERS
from allranks.local.plan import Step


def of_step(step: Step) -> Iterator[Problem]:
    """Counts that cannot be, a distribution that is not run yet, limits that leave nothing."""
    for problem in distributions.problems(step.distribution, step.instance_count):
        yield Problem(place.of_key(step, problem.where), problem.found, problem.expected, problem.fix)
    kind = step.distribution.type
    if kind not in LAUNCHERS:
        known = ", ".join(name for name in LAUNCHERS if name != "none")
        found = f"{kind} is not yet run by the local engine"
        yield Problem(place.of_key(step, "distribution.type"), found, f"{known}, or no distribution")
    if step.timeout is not None and not (math.isfinite(step.timeout) and step.timeout > 0):
        yield Problem(place.of_key(step, "limits.timeout"), f"found {step.timeout:g}", "more than 0 seconds")
    if step.shm_size <= 0:
        yield Problem(place.of_key(step, "resources.shm_size"), f"found {step.shm_size}", "a size such as 2g")
