"""Faults of a run, which the package allranks-lab reads and injects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from allranks.errors import Problem
    from allranks.history.recorder import RunRecorder
    from allranks.history.records import RunRecord, StepRecord
    from allranks.local.instances.instance import InstanceKind
    from allranks.local.instances.supervisor import InstanceSpec, Supervisor
    from allranks.plan.graph import Plan


class Injector(Protocol):
    """Inject the faults of one run into the attempts of its steps."""

    def variables(self, record: StepRecord, instance: int) -> dict[str, str]:
        """Return variables for the ranks on an instance of a step."""

    def delayed(self, record: StepRecord, specs: Sequence[InstanceSpec]) -> list[InstanceSpec]:
        """Return the instances of an attempt, some of which start their programs later."""

    def during(
        self, record: StepRecord, agents: Mapping[str, int], reports: Mapping[int, Path]
    ) -> AbstractAsyncContextManager[Callable[[], bool]]:
        """Inject faults while the block starts and monitors an attempt. Yield what returns whether an evicted instance
        has its grace period.

        agents:  for each instance the name of its agent, and its number within the run
        reports: by rank, its report file
        """

    async def next_instances(
        self, record: StepRecord, is_ending: Callable[[], bool], count: int, minimum: int
    ) -> int | None:
        """Wait until evicted instances are back, and return on how many instances the platform starts the step again;
        None if it does not. count, minimum: the step's number of instances, and the least on which it continues"""

    def close(self) -> None:
        """Note the faults that did not happen."""


class Faults(Protocol):
    """The faults that a user requests."""

    def problems(self, plan: Plan, kind: InstanceKind) -> list[Problem]:
        """Return a problem for each fault that instances of this kind cannot have. Raise InputError for a fault that
        cannot happen in any step."""

    def injector(self, plan: Plan, run: RunRecord, recorder: RunRecorder, supervisor: Supervisor) -> Injector:
        """Return the injector of a run, whose record has the faults that an earlier execution has injected."""


def read(texts: Sequence[str]) -> Faults:
    """Return the faults of texts such as ``kill:rank=3,step=20``. Raise InputError, also without the package."""
    from allranks import packages  # it imports importlib.metadata, in 20 ms

    return cast(Faults, packages.hook("faults", f"--fault {texts[0]}")(texts))
