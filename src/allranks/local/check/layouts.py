"""How a step is spread over instances and processes, and what it is allowed to use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from allranks.contract import distributions
from allranks.errors import Problem
from allranks.local import interpreters, rank_environment
from allranks.local.check import place
from allranks.local.launchers import LAUNCHERS
from allranks.local.plan import Plan, Step


def of_step(plan: Plan, step: Step, here: bool) -> Iterator[Problem]:
    """Counts that cannot be, a launcher that this machine lacks where the step runs here, limits that leave nothing."""
    for problem in distributions.problems(step.distribution, step.instance_count):
        yield Problem(place.of_key(step, problem.where), problem.found, problem.expected, problem.fix)
    if here:
        path = rank_environment.search_path(os.environ, interpreters.of_step(plan, step))
        if missing := LAUNCHERS[step.distribution.type].missing(path):
            yield Problem(place.of_key(step, missing.where), missing.found, missing.expected, missing.fix)
    if step.timeout is not None and not (math.isfinite(step.timeout) and step.timeout > 0):
        yield Problem(place.of_key(step, "limits.timeout"), f"found {step.timeout:g}", "more than 0 seconds")
    if step.shm_size <= 0:
        yield Problem(place.of_key(step, "resources.shm_size"), f"found {step.shm_size}", "a size such as 2g")
