"""Warn of many workers of data loaders in the 2 GiB of /dev/shm that Azure ML gives a container by default."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.contract.distributions import processes_per_instance
from allranks.contract.templating import wire
from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
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


def of_step(scope: Scope, step: Step) -> Iterator[Problem]:
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
