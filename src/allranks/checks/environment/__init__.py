"""Check the environments of any project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.checks import Findings, Row, rules_of
from allranks.checks.environment import files
from allranks.checks.plan.settings import CONDA, IMAGE
from allranks.errors import InputError, Problem, Rule
from allranks.sdk.suppressions import Suppressions
from allranks.sdk.yaml_lines import read_mapping

TABLE = (
    Row(
        files.registration, *(files.REFUSED, files.NO_NAME, files.SOURCE, files.CONTEXT, files.CONDA_WITH_BUILD, IMAGE)
    ),
    Row(files.conda, files.CONDA_FILE, CONDA),
    Row(files.build_context, files.NO_STAGE, files.SECRET),
)


def catalogue() -> tuple[Rule, ...]:
    """Return every rule about environments."""
    return rules_of(TABLE)


def check_files(path: Path) -> tuple[tuple[Path, ...], Findings]:
    """Return the files that describe environments at a path, or below it, and what is wrong with them.

    What a comment ignores is left out. Raise InputError if there is no environment.
    """
    found = files.environment_files(path)
    if not found:
        expected = "an environment's YAML with image or build, or a folder with some"
        raise InputError(Problem(str(path), "it contains no environment", expected, "name another path"))
    return found, Findings(Suppressions().remaining(problem for file in found for problem in _of_file(file)))


def _of_file(file: Path) -> Iterator[Problem]:
    try:
        document = read_mapping(file)
    except InputError as error:
        yield from files.REFUSED.mark(error.problems)
        return
    for row in TABLE:
        yield from row(file, document)
