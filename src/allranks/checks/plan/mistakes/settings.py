"""Warn of settings of a step: workers of data loaders in 2 GiB of /dev/shm, bindings in variables, spot capacity."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.contract.distributions import processes_per_instance
from allranks.contract.templating import wire
from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.plan.ports import Literal

MANY = 8
"""Workers of an instance from which a warning is given."""

DEFAULT = 2 << 30

LOADER_WORKERS = Rule(
    "loader-workers",
    Level.WARNING,
    f"{MANY} or more workers of data loaders on an instance hand their batches over in /dev/shm, which has 2 GiB.",
    'MicrosoftDocs/azure-docs#109791; microsoft/hi-ml#870; Microsoft Learn, "CLI (v2) command job YAML schema": '
    "resources.shm_size is 2g by default",
    "set resources.shm_size, such as 64g",
)

_OPTION = re.compile(
    r"--(?:data_?loader[_-])?(?:num[_-]workers|workers|number[_-]of[_-]workers)(?:=|\s+)['\"]?"
    r"(?:(?P<count>\d+)\b|\$\{\{\s*inputs\.(?P<input>[^\s{}]+)\s*}})"
)
VARIABLE_BINDING = Rule(
    "variable-binding",
    Level.WARNING,
    "An environment variable refers to a port of the step; Azure ML replaces ports in the command alone.",
    "physical-ai-toolchain#855: checkpoints were lost in a folder of that name",
    "set it in the command",
)
_LITERAL = re.compile(r"\$\{\{\s*(?:inputs|outputs)\.[\w.\-]+\s*}}")
SPOT = Rule(
    "spot-without-checkpoints",
    Level.WARNING,
    "A step runs on spot capacity, and nothing in it looks like checkpoints, or they are uploaded at its end only. "
    "After an eviction it starts from its beginning.",
    "Azure/MachineLearningNotebooks#1242 and #1575; MicrosoftDocs/azure-docs#87051",
    "write checkpoints to an output with the mode rw_mount, and resume from it",
)
_CHECKPOINTS = re.compile(r"check_?-?point|ckpt|resum|snapshot|\bsave_dir\b", re.IGNORECASE)


def of_loader_workers(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if the workers that the command asks for may not fit."""
    workers = _workers(scope, step) * processes_per_instance(step.distribution)
    if workers >= MANY and step.shm_size <= DEFAULT:
        found = f"{workers} workers of data loaders on each instance, and {step.shm_size / (1 << 30):g} GiB of /dev/shm"
        expected = "room for the batches that each worker prefetches; else the job ends with a bus error"
        yield LOADER_WORKERS.problem("resources.shm_size", found, expected)


def _workers(scope: Scope, step: Step) -> int:
    """Return the workers of one process, as far as the command says."""
    most = 0
    for match in _OPTION.finditer(step.command):
        text = match["count"]
        if text is None:
            port = next((port for port in step.inputs if port.name == match["input"]), None)
            value = scope.value(port.value) if port else None
            text = wire(value.value) if isinstance(value, Literal) else ""
        most = max(most, int(text) if text.isdecimal() and len(text) < 6 else 0)
    return most


def of_variables(_scope: Scope, step: Step) -> Iterator[Problem]:
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


def of_spot(_scope: Scope, step: Step) -> Iterator[Problem]:
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
