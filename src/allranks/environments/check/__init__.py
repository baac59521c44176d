"""Check an environment: one module for each kind of mistake, all of them called from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from allranks.environments.check import (
    base,
    downloads,
    expectations,
    hadolint,
    labels,
    pins,
    registration,
    resolving,
    secrets,
    ssh,
)
from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem

CHECKS: tuple[Callable[[EnvironmentFolder, Path], Iterator[Problem]], ...] = (
    base.problems,
    labels.problems,
    pins.problems,
    downloads.problems,
    expectations.problems,
    secrets.problems,
    ssh.problems,
    registration.problems,
    hadolint.problems,
)


def check(environment: EnvironmentFolder, root: Path, resolve: bool = False) -> list[Problem]:
    """Return all problems of an environment, each with its file and line.

    root:    the folder of all environments, with the base in it
    resolve: let pip check that the pinned packages are compatible, which takes a minute and the network
    """
    checks = (*CHECKS, resolving.problems) if resolve else CHECKS
    return [problem for each in checks for problem in each(environment, root)]
