"""A step's environment variables: what Azure ML does not fill in."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.contract.templating import used_names
from allranks.errors import Problem
from allranks.plan.check import place
from allranks.plan.graph import Step

_LITERAL = ("outputs", "inputs", "search_space")
"""Kinds of names that are filled in within a command alone."""


def of_step(step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable with a binding that its process gets as text.

    Azure ML fills a command's bindings in, not a variable's: of a checkpoint folder `${{outputs.checkpoints}}` the
    process saw those very characters, wrote into a folder of that name, and lost its checkpoints
    (microsoft/physical-ai-toolchain#855).
    """
    for name, value in step.environment_variables.items():
        for binding in dict.fromkeys(used_names(value)):
            if binding.kind in _LITERAL and binding.name:
                yield Problem(
                    place.of_key(step, f"environment_variables.{name}"),
                    f"{binding} is not filled in here: the process gets these characters",
                    "a text; Azure ML fills in the bindings of a command alone",
                    f"set it in the command: {name}={binding} python ...",
                )
