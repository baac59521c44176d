"""Check what this machine lacks to run a plan."""

from __future__ import annotations

import os
from collections.abc import Iterator

from allranks.errors import Problem
from allranks.local import capacity, interpreters
from allranks.local.launchers import LAUNCHERS
from allranks.local.step import rank_environment
from allranks.plan.check import check
from allranks.plan.graph import Plan, steps


def problems(plan: Plan) -> list[Problem]:
    """Return everything that prevents the plan from running on this machine: problems of the plan itself, then more
    processes than this machine can hold, then launchers that are not installed."""
    found = check(plan)
    # A count that no cluster has is one mistake, not two.
    return [*found, *(() if found else capacity.problems(plan)), *_missing_launchers(plan)]


def _missing_launchers(plan: Plan) -> Iterator[Problem]:
    for path, step in steps(plan.graph):
        search_path = rank_environment.search_path(
            os.environ, interpreters.of_environment(step.environment, plan.source)
        )
        if missing := LAUNCHERS[step.distribution.type].missing(search_path):
            location = f" ({step.location})" if step.location else ""
            yield Problem(f"step {path}, key {missing.where}{location}", missing.found, missing.expected, missing.fix)
