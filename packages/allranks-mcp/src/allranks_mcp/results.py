"""What the tools return. The SDK makes the schemas of the results from these types."""

from collections.abc import Sequence
from dataclasses import dataclass

from allranks.errors import Problem

MOST = 30
"""Maximum number of findings, steps or differences in a result."""


@dataclass(frozen=True)
class CheckResult:
    """ok: whether there is no error. problems: the first of them, errors first. total: the number of all"""

    ok: bool
    problems: Sequence[Problem]
    total: int


@dataclass(frozen=True)
class PlannedStep:
    """layout: instances x processes on each. after: the steps that it waits for"""

    path: str
    component: str
    layout: str
    environment: str
    command: str
    after: Sequence[str]
    inputs: dict[str, str]
    outputs: Sequence[str]


@dataclass(frozen=True)
class PlanResult:
    """steps: the first of them. total: the number of all"""

    pipeline: str
    inputs: dict[str, str]
    steps: Sequence[PlannedStep]
    total: int
    warnings: Sequence[str]


@dataclass(frozen=True)
class RunResult:
    """steps: their states, if a single run was asked for. failure: of the first failed step; the tool why says more"""

    run: str
    pipeline: str
    status: str
    created: str
    seconds: float | None
    metrics: dict[str, float]
    steps: dict[str, str]
    failure: str
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class LogPage:
    """first: the number of the first of these lines, from 1. total: the number of all"""

    run: str
    first: int
    total: int
    lines: Sequence[str]
