"""Warn of a job on spot capacity that keeps no checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

SPOT = Rule(
    "spot-without-checkpoints",
    Level.WARNING,
    "A step runs on spot capacity, and nothing in it looks like checkpoints, or they are uploaded at its end only. "
    "After an eviction it starts from its beginning.",
    "Azure/MachineLearningNotebooks#1242 and #1575; MicrosoftDocs/azure-docs#87051",
    "write checkpoints to an output with the mode rw_mount, and resume from it",
)

_CHECKPOINTS = re.compile(r"check_?-?point|ckpt|resum|snapshot|\bsave_dir\b", re.IGNORECASE)


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if an eviction loses the work of a step."""
    if step.job_tier.lower() != "spot":
        return
    names = [*(port.name for port in step.inputs), *step.environment_variables, step.command]
    outputs = [port for port in step.outputs if _CHECKPOINTS.search(port.name)]
    if outputs and all(port.mode == "upload" for port in outputs):
        names_of_outputs = ", ".join(port.name for port in outputs)
        found = f"{names_of_outputs} has the mode upload: Azure ML uploads it when the step ends, not at an eviction"
        yield SPOT.problem(f"outputs.{outputs[0].name}", found, "an output with the mode rw_mount")
    elif not outputs and not any(_CHECKPOINTS.search(name) for name in names):
        found = "spot capacity, and no checkpoints among the inputs, the outputs and the command"
        yield SPOT.problem("queue_settings.job_tier", found, "a step that resumes after an eviction")
