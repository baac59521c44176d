"""Common mistakes with launches, sizes and storage, which azure-ai-ml and Azure ML accept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from allranks.checks.plan.ignore import Ignored
from allranks.checks.plan.mistakes import count_binding, latest, launchers, rank_variables, settings
from allranks.checks.plan.rule import Rule, rules_in
from allranks.checks.plan.scope import Scope
from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.sdk.yaml_lines import line_of

RULES: tuple[Rule, ...] = rules_in((launchers, rank_variables, settings, latest, count_binding))

_CHECKS = (
    launchers.of_nested,
    launchers.of_instances_apart,
    rank_variables.of_local_rank,
    rank_variables.of_mpi,
    settings.of_loader_workers,
    settings.of_variables,
    latest.of_step,
    settings.of_spot,
)


def of_step(scope: Scope, step: Step, ignored: Ignored) -> Iterator[Problem]:
    """Yield the mistakes of a step, each at its key, without those that a comment in the component's file ignores."""
    for problem in by_key(scope, step):
        if not _is_ignored_by_component(step, problem, ignored):
            yield replace(problem, where=scope.key(step, problem.where))


def by_key(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield the mistakes of a step. The place of each is its key alone, such as ``command``."""
    return (problem for check in _CHECKS for problem in check(scope, step))


def _is_ignored_by_component(step: Step, problem: Problem, ignored: Ignored) -> bool:
    if not step.spec.endswith((".yaml", ".yml")):
        return False
    comments = ignored.of(step.spec)
    if not comments.everywhere and not comments.by_line:
        return False
    return comments.ignore(problem.rule, line_of(Path(step.spec), *problem.where.split(".")))
