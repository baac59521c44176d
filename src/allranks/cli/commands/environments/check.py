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
    from allranks.cli.console import console
    from allranks.cli.errors import print_warnings
    from allranks.cli.views.json import to_json
    from allranks.errors import InputError

    given = names or []
    paths = [name for name in given if _is_path(name)]
    own = [name for name in given if name not in paths]
    checked: list[str] = []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    advice: list[Problem] = []
    if own or not paths:
        _check_own(own, folder, resolve, checked, problems, warnings)
    for path in paths:
        _check_any(path, checked, problems, warnings, advice)
    if strict:
        problems, warnings, advice = [*problems, *warnings, *advice], [], []
    if json:
        found = {"environments": checked, "problems": problems, "warnings": warnings, "advice": advice}
        print(to_json(found))
        sys.exit(2 if problems else 0)
    print_warnings(warnings)
    if problems:
        raise InputError(*problems)
    hidden = f"; advice: {len(advice)} (--strict lists it)" if advice else ""
    console().print(f"{', '.join(checked)}: no problems{hidden}", soft_wrap=True)


def _is_path(name: str) -> bool:
    """Return whether an argument is a path: it has a separator, or it is the name of a YAML file, or it is a dot."""
    return "/" in name or name in (".", "..") or Path(name).suffix.lower() in (".yaml", ".yml")


def _check_own(
    names: Sequence[str],
    folder: Path | None,
    resolve: bool,
    checked: list[str],
    problems: list[Problem],
    warnings: list[Problem],
) -> None:
    """Check environments of a project by name, and add what was found."""
    from allranks.checks.environment import check as check_one
    from allranks.checks.environment import hadolint
    from allranks.cli.console import errors
    from allranks.environments.find import environments_folder, find_environments

    root = folder or environments_folder(Path.cwd())
    for environment in find_environments(root, tuple(names)):
        with errors().status(f"checking {environment.name}"):  # pip takes minutes
            problems += check_one(environment, root, resolve)
        checked.append(environment.name)
    if missing := hadolint.missing():
        warnings.append(missing)


def _check_any(
    path: str, checked: list[str], problems: list[Problem], warnings: list[Problem], advice: list[Problem]
) -> None:
    """Check environments of any project, and add what was found."""
    from allranks.checks import any_environment as any_project
    from allranks.errors import InputError, Problem

    if not Path(path).exists():
        raise InputError(Problem(path, "there is no such file or folder", "an environment's YAML, or a folder"))
    files, found = any_project.check(Path(path))
    checked += map(str, files)
    problems += found.errors
    warnings += found.warnings
    advice += found.advice
