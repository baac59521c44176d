"""Check environments: those of this project's style, with a Dockerfile and expect.yaml, and those of any project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.checks import Findings, Row, rules_of
from allranks.checks.environment import dockerfile, files, packages
from allranks.checks.plan.settings import CONDA, IMAGE
from allranks.errors import InputError, Level, Problem, Rule
from allranks.images.find import EnvironmentFolder
from allranks.sdk.suppressions import Suppressions
from allranks.sdk.yaml_lines import read_mapping


def _own(code: str, what: str, fix: str) -> Rule:
    return Rule(code, Level.ERROR, what, "docs/environments.md", fix)


_SYNC = "allranks environments sync"

OF_FOLDERS = (
    Row(dockerfile.base_block_copied, _own("base-copy", "The base's stages or setup_mpi.sh are not copied.", _SYNC)),
    Row(files.labels, _own("labels", "environment.yaml has other labels than the Dockerfile.", _SYNC)),
    Row(packages.pinned, _own("pins", "A package or an image is not pinned, or in two versions.", "pin it")),
    Row(dockerfile.downloads, _own("download", "A build downloads without a checksum or a commit.", "add it")),
    Row(packages.expectations, _own("expectations", "expect.yaml and the Dockerfile disagree.", "correct one of them")),
    Row(dockerfile.secrets, files.SECRET),
    Row(dockerfile.ssh, _own("ssh", "An image with Open MPI lacks an sshd that mpirun can use.", "run setup_mpi.sh")),
    Row(files.own_registration, _own("registration", "environment.yaml cannot be registered as it is.", "correct it")),
)
"""Rules for the environments of a project of this style."""

OF_FILES = (
    Row(
        files.registration, *(files.REFUSED, files.NO_NAME, files.SOURCE, files.CONTEXT, files.CONDA_WITH_BUILD, IMAGE)
    ),
    Row(files.conda, files.CONDA_FILE, CONDA),
    Row(files.build_context, files.DOCKERFILE, files.SECRET),
)
"""Rules for the environments of any project."""


def catalogue() -> tuple[Rule, ...]:
    """Return every rule about the environments of any project."""
    return rules_of(OF_FILES)


def own_catalogue() -> tuple[Rule, ...]:
    """Return every rule about the environments of a project of this style."""
    return rules_of(OF_FOLDERS)


def check(environment: EnvironmentFolder, root: Path) -> list[Problem]:
    """Return all problems of an environment, each with its file and line.

    root: the folder of all environments, with the base in it
    """
    return [problem for row in OF_FOLDERS for problem in row(environment, root)]


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
    for row in OF_FILES:
        yield from row(file, document)
