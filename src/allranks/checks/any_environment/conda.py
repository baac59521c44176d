"""Check the conda specification of an environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from allranks.checks.any_environment.finding import is_template
from allranks.checks.plan.rule import Level, Rule
from allranks.errors import InputError, Problem
from allranks.sdk.yaml_lines import at, read_mapping

_CONDA = 'conda, "Managing environments", Creating an environment file manually'

MISSING = Rule(
    "conda-file",
    Level.ERROR,
    "The conda file does not exist, or is no mapping in YAML.",
    "azure-ai-ml, `entities/_assets/environment.py`, Environment.conda_file",
    "correct the path, or write the file",
)
DEPENDENCIES = Rule(
    "conda-dependencies",
    Level.ERROR,
    "`dependencies` of a conda file is no list of packages and at most one mapping `pip: [...]`.",
    _CONDA,
    "write: dependencies: [python=3.11, pip, {pip: [PACKAGE==VERSION]}]",
)
NO_PIP = Rule(
    "conda-pip",
    Level.WARNING,
    "A conda file installs packages with pip and does not name pip. conda adds it with a warning, or the build fails.",
    _CONDA,
    "add pip to the dependencies",
)
UNPINNED = Rule(
    "conda-unpinned",
    Level.ADVICE,
    "A package has no version, so that the next build of the image has another one.",
    "style",
    "name its version",
)

_NAME = re.compile(r"[A-Za-z0-9_.\-]+")


def problems(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the conda specification that an environment's file names or contains."""
    value = document.get("conda_file")
    if isinstance(value, dict):
        yield from _of_specification(value, lambda *keys: at(file, "conda_file", *keys))
    elif isinstance(value, str) and value and not is_template(value):
        path = file.parent / value.removeprefix("file:")
        if not path.is_file():
            yield MISSING.problem(at(file, "conda_file"), f"{value} does not exist", "a conda file")
            return
        try:
            specification = read_mapping(path)
        except InputError as error:
            yield from MISSING.mark(error.problems)
            return
        yield from _of_specification(specification, lambda *keys: at(path, *keys))


def _of_specification(specification: Mapping[str, Any], place: Callable[..., str]) -> Iterator[Problem]:
    listed = specification.get("dependencies")
    where = place("dependencies")
    if not isinstance(listed, list) or not listed:
        yield DEPENDENCIES.problem(where, f"dependencies {listed!r}", "a list of packages")
        return
    pip: list[str] = []
    names: list[str] = []
    for entry in listed:
        if isinstance(entry, dict) and list(entry) == ["pip"] and isinstance(entry["pip"], list):
            pip += map(str, entry["pip"])
        elif isinstance(entry, str):
            names.append(entry)
        else:
            yield DEPENDENCIES.problem(where, f"dependency {entry!r}", "a package, or pip: [...]")
    conda_names = {_name(entry) for entry in names}
    if pip and "pip" not in conda_names:
        yield NO_PIP.problem(where, "packages for pip, and no pip", "pip among the dependencies")
    unpinned = [entry for entry in names if "=" not in entry and "<" not in entry and _name(entry) != "pip"]
    unpinned += [entry for entry in pip if not re.search(r"[=<>~@]|^-|^\.|/", entry)]
    if unpinned:
        yield UNPINNED.problem(where, f"no version of {', '.join(unpinned)}", "a version of each package")


def _name(entry: str) -> str:
    match = _NAME.match(entry.rpartition("::")[2].strip())
    return match[0].lower() if match else ""
