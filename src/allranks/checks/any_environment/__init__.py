"""Check the environments of any project: files that `az ml environment create` takes, conda files and Dockerfiles.

Nothing is expected of them but what Azure ML needs. The rules for this project's own environments are in
`allranks.checks.environment`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.checks.any_environment import build_context, conda, registration
from allranks.checks.any_environment.finding import environment_files
from allranks.checks.plan.ignore import Ignored
from allranks.checks.plan.rule import Findings, Rule, rules_in
from allranks.errors import InputError, Problem
from allranks.sdk.yaml_lines import read_mapping

CATALOGUE: tuple[Rule, ...] = rules_in((registration, conda, build_context))
"""Every rule about environments, for docs/checks.md."""


def check(path: Path) -> tuple[tuple[Path, ...], Findings]:
    """Return the files that describe environments at a path, or below it, and what is wrong with them.

    Warnings and advice that a comment ignores are left out. Raise InputError if there is no environment.
    """
    files = environment_files(path)
    if not files:
        expected = "an environment's YAML with image or build, or a folder with some"
        raise InputError(Problem(str(path), "it contains no environment", expected, "name another path"))
    found = dict.fromkeys(problem for file in files for problem in _of_file(file))
    return files, Findings.of(found, CATALOGUE, Ignored().remaining)


def _of_file(file: Path) -> Iterator[Problem]:
    try:
        document = read_mapping(file)
    except InputError as error:
        yield from registration.REFUSED.mark(error.problems)
        return
    yield from registration.problems(file, document)
    yield from conda.problems(file, document)
    yield from build_context.problems(file, document)
