"""Warn of environment variables with references that Azure ML does not replace."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

VARIABLE_BINDING = Rule(
    "variable-binding",
    Level.WARNING,
    "An environment variable refers to a port of the step; Azure ML replaces ports in the command alone.",
    "physical-ai-toolchain#855: checkpoints were lost in a folder of that name",
    "set it in the command",
)

_LITERAL = re.compile(r"\$\{\{\s*(?:inputs|outputs)\.[\w.\-]+\s*}}")


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable that refers to a port."""
    for name, value in step.environment_variables.items():
        match = _LITERAL.search(value) if isinstance(value, str) else None
        if match:
            yield VARIABLE_BINDING.problem(
                f"environment_variables.{name}",
                f"{match[0]} stays as it is: Azure ML replaces ports in the command alone",
                "a literal; in a pipeline also ${{parent.inputs.NAME}}",
                f"set it in the command: export {name}={match[0]}; ...",
            )
