"""Check the numbers of instances and processes of a step, and its limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.contract import produce
from allranks.contract.distributions import processes_per_instance
from allranks.contract.single import Single
from allranks.errors import Problem
from allranks.plan.graph import Step

LAYOUT = Rule(
    "layout",
    Level.ERROR,
    "A number of instances or processes, a timeout or a size of /dev/shm is impossible.",
    'Microsoft Learn, "Manage and increase quotas and limits for resources with Azure Machine Learning"; '
    "the launch contract of each distribution type",
    "correct the number",
)

MOST_INSTANCES = 65_000
MOST_CONNECTED_INSTANCES = 4_000
"""The largest clusters of Azure ML: of any instances, and of instances that communicate. Source: "Manage and increase
quotas and limits for resources with Azure Machine Learning"."""

MOST_PROCESSES = 1_792
"""The cores of Azure's largest size, Standard_M1792ixds_32_v3."""


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield impossible counts and limits."""
    for problem in produce.problems(step.distribution, step.instance_count):
        yield replace(problem, where=scope.key(step, problem.where))
    yield from _too_many(scope, step)
    if step.timeout is not None and not (math.isfinite(step.timeout) and step.timeout > 0):
        yield Problem(scope.key(step, "limits.timeout"), f"{step.timeout:g}", "more than 0 seconds")
    if step.shm_size <= 0:
        yield Problem(scope.key(step, "resources.shm_size"), str(step.shm_size), "a size such as 2g")


def _too_many(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield counts that no cluster has. Without a bound, a number with too many digits exhausts memory."""
    alone = step.distribution.type == Single.type
    most = MOST_INSTANCES if alone else MOST_CONNECTED_INSTANCES
    if step.instance_count > most:
        cluster = "cluster" if alone else "cluster whose instances communicate"
        expected = f"at most {most:,}, the instances of Azure ML's largest {cluster}"
        found, where = f"{step.instance_count:,}", scope.key(step, "resources.instance_count")
        yield Problem(where, found, expected, "set it to the number of instances that the step uses")
    processes = processes_per_instance(step.distribution)
    if processes > MOST_PROCESSES:
        where = scope.key(step, "distribution.process_count_per_instance")
        expected = f"at most {MOST_PROCESSES:,}, the cores of Azure's largest size"
        yield Problem(where, f"{processes:,}", expected, "set it to the number of GPUs of an instance")
