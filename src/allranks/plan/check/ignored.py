"""Warn of settings of a step that azure-ai-ml does not send. The step runs without them, there and here."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

IGNORED = Rule(
    "ignored-environment",
    Level.WARNING,
    "A step sets another environment than its component's; azure-ai-ml does not send it.",
    "azure-ai-ml 1.35, `entities/_builders/command.py`, Command._to_rest_object",
    "set the environment of the component",
)


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if a step's environment is not its component's (azure-ai-ml 1.35, `Command._to_rest_object`)."""
    if step.ignored_environment:
        yield Problem(
            scope.key(step, "environment"),
            f"{step.ignored_environment} is set on the step, which azure-ai-ml does not send",
            f"the environment of its component, in which it runs: {step.environment or 'none'}",
            "load the component once more, and set the environment of that",
            code="ignored-environment",
        )
