"""Realise an environment on this machine: choose how, make it, and say what differs from its definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.environments import cache, conda, packages, venv
from allranks.environments.cache import Report
from allranks.environments.packages import Packages
from allranks.errors import InputError, Problem
from allranks.plan.environment import Environment

HOST, VENV, CONDA, AUTO = "host", "venv", "conda", "auto"


@dataclass(frozen=True)
class Realised:
    """How an environment is realised.

    how:         host, venv or conda
    interpreter: of its processes; None: that of a step without an environment
    notes:       what differs from the definition
    """

    how: str
    interpreter: Path | None = None
    notes: tuple[str, ...] = ()


def realise(environment: Environment, how: str, report: Report, *, makes: bool = True, installer: str = "") -> Realised:
    """Realise an environment.

    how:       auto, host, venv or conda
    makes:     whether to make what does not exist yet. Otherwise only its path is returned
    installer: a command that installs packages with pip. It gets a virtual environment that no other command shares

    Raise InputError if it cannot be realised in this way.
    """
    if how == HOST:
        return Realised(HOST)
    found = packages.of(environment)
    if found is None:
        note = "its definition is not on this machine, so that it runs with the Python of allranks"
        return Realised(HOST, notes=(f"{note} (allranks.yaml may name a file, see docs/names.md)",))
    how = _automatic(environment, found, installer) if how == AUTO else how
    if how == HOST:
        return Realised(HOST, notes=tuple(_differences(found)))
    where = f"environment {environment.name}" if environment.name else f"environment {environment}"
    file = Path(environment.file or Path(environment.folder, environment.dockerfile))
    if how == CONDA and not environment.definition:
        raise InputError(Problem(f"{where} ({file})", "it has no conda file", "one", "--environment venv"))
    folder = conda.folder_of(environment.definition, found) if how == CONDA else venv.folder_of(found, installer)
    if makes and not cache.exists(folder):

        def create() -> None:
            if how == CONDA:
                conda.make(environment.definition, found, folder, where, file, report)
            else:
                venv.make(found, folder, where, file, report, has_pip=bool(installer))

        cache.make(folder, create, report)
    return Realised(how, folder / "bin" / "python", tuple(_differences(found, how)))


def _automatic(environment: Environment, found: Packages, installer: str) -> str:
    """Return how an environment is realised most cheaply among the ways that are true to its packages."""
    if not installer and not found.lacking_packages and not any(packages.host_lacks(found)):
        return HOST
    if found.lacking_packages and environment.definition and conda.program():
        return CONDA
    return VENV


def _differences(found: Packages, how: str = HOST) -> Iterator[str]:
    if how == VENV and found.from_conda:
        yield f"from PyPI instead of conda's channels: {', '.join(found.from_conda)}"
    lacking = found.lacking if how != CONDA else [each for each in found.lacking if each.startswith("image ")]
    if lacking:
        yield f"not used: {', '.join(lacking)}"
