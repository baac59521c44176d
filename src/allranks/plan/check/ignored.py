"""What a step sets and azure-ai-ml does not send: the step runs without it, there and here."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield the environment of a step that is not its component's (azure-ai-ml 1.35, `Command._to_rest_object`)."""
    if step.ignored_environment:
        yield Problem(
            scope.key(step, "environment"),
            f"{step.ignored_environment} is set on the step, which azure-ai-ml does not send",
            f"the environment of its component, in which it runs: {step.environment or 'none'}",
            "load the component once more, and set the environment of that",
        )
