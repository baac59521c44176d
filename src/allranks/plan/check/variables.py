"""Environment variables of a step that do not become what they look like."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

_LITERAL = re.compile(r"\$\{\{\s*(?:inputs|outputs)\.[\w.\-]+\s*}}")


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable in which a port stands.

    Azure ML leaves it as it is; in physical-ai-toolchain #855 checkpoints were lost in a folder of that name.
    """
    for name, value in step.environment_variables.items():
        found = _LITERAL.search(value) if isinstance(value, str) else None
        if found:
            yield Problem(
                scope.key(step, f"environment_variables.{name}"),
                f"{found[0]} stays as it is: Azure ML replaces ports in the command alone",
                "a literal, or ${{parent.inputs.NAME}}",
                f"set it in the command: export {name}={found[0]}; ...",
            )
