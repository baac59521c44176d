"""`allranks environments check`: check environments without building them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli import completion
from allranks.cli.options import EnvironmentsOption, JsonOption

if TYPE_CHECKING:
    from allranks.errors import Problem


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME|PATH",
            help="Names of environments of the project, or files and folders of any environments. Default: all of the "
            "project.",
            show_default=False,
            autocompletion=completion.environments,
        ),
    ] = None,
    folder: EnvironmentsOption = None,
    resolve: Annotated[
        bool, typer.Option("--resolve/--no-resolve", help="Also resolve the packages with pip. Slow.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="For paths: warnings are problems too, and so is advice.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check environments without building them.

    A name is an environment of this project's style, with a Dockerfile and expect.yaml. A path is an environment of any
    project: a YAML file with image or build, or a folder, whose environments at any depth are checked for what Azure ML
    needs, together with their conda files and Dockerfiles; docs/checks.md lists the rules.

    Print every problem with file and line. Exit with 2 if there are any. Without hadolint, its rules are not checked,
    and a warning says so.
    """
    from allranks.checks.table import Findings
    from allranks.cli.console import console
    from allranks.cli.errors import print_warnings
    from allranks.cli.views.json import to_json
    from allranks.errors import InputError

    given = names or []
    paths = [name for name in given if _is_path(name)]
    own = [name for name in given if name not in paths]
    checked: list[str] = []
    found: list[Problem] = []
    if own or not paths:
        found += _check_own(own, folder, resolve, checked)
    for path in paths:
        found += _check_files(path, checked)
    findings = Findings(tuple(found)).strict() if strict else Findings(tuple(found))
    if json:
        kinds = {**findings.by_kind(), "warnings": (*findings.warnings, *findings.machine)}
        del kinds["machine"]
        print(to_json({"environments": checked, **kinds}))
        sys.exit(2 if findings.errors else 0)
    print_warnings((*findings.warnings, *findings.machine))
    if findings.errors:
        raise InputError(*findings.errors)
    hidden = f"; advice: {len(findings.advice)} (--strict lists it)" if findings.advice else ""
    console().print(f"{', '.join(checked)}: no problems{hidden}", soft_wrap=True)


def _is_path(name: str) -> bool:
    """Return whether an argument is a path: it has a separator, or it is the name of a YAML file, or it is a dot."""
    return "/" in name or name in (".", "..") or Path(name).suffix.lower() in (".yaml", ".yml")


def _check_own(names: Sequence[str], folder: Path | None, resolve: bool, checked: list[str]) -> list[Problem]:
    """Check environments of a project by name, add their names, and return what was found."""
    from allranks.checks.environment import check
    from allranks.checks.environment.dockerfile import missing_hadolint
    from allranks.cli.console import errors
    from allranks.environments.find import environments_folder, find_environments

    root = folder or environments_folder(Path.cwd())
    found: list[Problem] = []
    for environment in find_environments(root, tuple(names)):
        with errors().status(f"checking {environment.name}"):  # pip takes minutes
            found += check(environment, root, resolve)
        checked.append(environment.name)
    missing = missing_hadolint()
    return [*found, missing] if missing else found


def _check_files(path: str, checked: list[str]) -> Sequence[Problem]:
    """Check environments of any project, add their files, and return what was found."""
    from allranks.checks.environment import check_files
    from allranks.errors import InputError, Problem

    if not Path(path).exists():
        raise InputError(Problem(path, "there is no such file or folder", "an environment's YAML, or a folder"))
    files, findings = check_files(Path(path))
    checked += map(str, files)
    return findings.found
