"""Make an environment available on this machine: choose how, make it, and report what differs from its definition."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from allranks.errors import InputError, Problem
from allranks.images import cache, conda, container, packages, rootfs, venv
from allranks.images.cache import Report
from allranks.images.packages import Packages
from allranks.plan.environment import Environment
from allranks.sdk.uploads import DOCKERFILE

HOST, VENV, CONDA, CONTAINER, AUTO = "host", "venv", "conda", "container", "auto"


class Realised(NamedTuple):
    """An environment on this machine.

    how:         host, venv, conda or container
    interpreter: of its processes; None: that of a step without an environment
    notes:       differences from the definition
    """

    how: str
    interpreter: Path | None = None
    notes: tuple[str, ...] = ()


def realise(environment: Environment, how: str, report: Report, *, makes: bool = True, installer: str = "") -> Realised:
    """Make an environment available.

    how:       auto, host, venv, conda or container
    makes:     whether to make an environment that does not exist; otherwise only return its path
    installer: a command that installs packages with pip. It gets a virtual environment that no other command shares

    Raise InputError if this is not possible.
    """
    if how == HOST:
        return Realised(HOST)
    is_image = container.is_defined(environment)
    found = None if how == CONTAINER and is_image and not environment.definition else packages.of(environment)
    how = _automatic(environment, found, installer) if how == AUTO else how
    if how == CONDA and environment.definition and conda.program() is None:
        how = VENV
    if found is None and not (how == CONTAINER and is_image):
        note = "its definition is not on this machine, so that it runs with the Python of allranks"
        return Realised(HOST, notes=(f"{note} (allranks.yaml may name a file, see docs/reference/names.md)",))
    if how == HOST:
        return Realised(HOST, notes=tuple(_differences(environment, found or Packages(), how)))
    where = f"environment {environment.name}" if environment.name else f"environment {environment}"
    file = Path(environment.file or Path(environment.folder, environment.dockerfile or DOCKERFILE))
    needed = {CONDA: ("conda file", environment.definition), CONTAINER: ("image", is_image)}
    if how in needed and not needed[how][1]:
        raise InputError(Problem(f"{where} ({file})", f"it has no {needed[how][0]}", "one", "--environment venv"))
    found = found or Packages()
    if how == CONTAINER:
        folder = container.folder_of(environment)
    else:
        folder = conda.folder_of(environment.definition, found) if how == CONDA else venv.folder_of(found, installer)
    if makes and not cache.exists(folder):
        create = {
            CONTAINER: partial(container.make, environment, found, folder, where, file, report),
            CONDA: partial(conda.make, environment.definition, found, folder, where, file, report),
            VENV: partial(venv.make, found, folder, where, file, report, has_pip=bool(installer)),
        }
        cache.make(folder, create[how], report)
    if how == CONTAINER:
        return Realised(how, rootfs.interpreter(folder / rootfs.FOLDER))
    return Realised(how, folder / "bin" / "python", tuple(_differences(environment, found, how)))


def _automatic(environment: Environment, found: Packages | None, installer: str) -> str:
    """Return the cheapest way that provides all of the environment's packages. The image beside a conda file does not
    count as one."""
    others = found is None or bool(found.conda_packages or (environment.folder and found.unused))
    if others and environment.definition and conda.program():
        return CONDA
    if others and container.is_defined(environment) and container.is_possible():
        return CONTAINER
    is_here = found and not found.conda_packages and not any(packages.host_lacks(found))
    return HOST if is_here and not installer else VENV


def _differences(environment: Environment, found: Packages, how: str) -> Iterator[str]:
    if found.conda_packages and how != CONDA:
        way = "conda installs them, with micromamba on PATH" if environment.definition else "container has them"
        yield f"left out: {', '.join(found.conda_packages)}; --environment {way}"
    if found.unused:
        yield f"not used: {', '.join(found.unused)}"
