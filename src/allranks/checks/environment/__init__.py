"""Check an environment: the table of its rules, which the modules here have by what they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from allranks.checks.environment import (
    base,
    expectations,
    hadolint,
    instructions,
    pins,
    registration,
    resolving,
    secrets,
)
from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem

CHECKS: tuple[Callable[[EnvironmentFolder, Path], Iterator[Problem]], ...] = (
    base.problems,
    registration.of_labels,
    pins.problems,
    instructions.of_downloads,
    expectations.problems,
    secrets.problems,
    instructions.of_ssh,
    registration.of_name,
    hadolint.problems,
)


def check(environment: EnvironmentFolder, root: Path, resolve: bool = False) -> list[Problem]:
    """Return all problems of an environment, each with its file and line.

    root:    the folder of all environments, with the base in it
    resolve: let pip check that the pinned packages are compatible, which takes a minute and the network
    """
    checks = (*CHECKS, resolving.problems) if resolve else CHECKS
    return [problem for each in checks for problem in each(environment, root)]
