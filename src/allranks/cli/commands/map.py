"""`allranks map`: print the lines of allranks.yaml that a pipeline still needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from allranks.cli.console import console, errors
from allranks.cli.options import FileArgument, FolderOption, ParamsOption, SetOption, option
from allranks.cli.values import settings_of
from allranks.errors import InputError, Problem
from allranks.history.formatting import count
from allranks.history.workspace import Workspace
from allranks.sdk.paths import shown

if TYPE_CHECKING:
    from allranks.plan.assets.lookup import AssetLookup, Use
    from allranks.plan.assets.skeleton import MissingLine


def map_(
    file: FileArgument,
    settings: SetOption = None,
    params: ParamsOption = None,
    write: Annotated[
        bool, option("--write", "Add the lines to allranks.yaml. Existing lines are not changed.")
    ] = False,
    workspace: FolderOption = None,
) -> None:
    """List the names in a pipeline that this machine cannot resolve.

    Print the missing lines of allranks.yaml: registered components, data, environments and models, each with the places
    that refer to it. Complete the paths.
    """
    from allranks.plan.assets import mapping_file, skeleton
    from allranks.plan.reader import lookup_of, opened

    values = settings_of(settings, params)
    other_problems = 0
    lookup = lookup_of(file, values, Workspace.at(workspace))
    with opened(file, values, lookup) as job:
        try:
            job.plan()
        except InputError as error:
            # A problem of a name may have got a more exact place.
            of_names = {replace(problem, where="") for problem in lookup.problems}
            other_problems = sum(replace(problem, where="") not in of_names for problem in error.problems)
    lines = skeleton.missing(use for use in lookup.uses if not _has_virtual_environment(use, lookup))
    target = lookup.file.path if lookup.file else lookup.folder / mapping_file.NAMES[0]
    if not lines:
        errors().print(f"this machine can resolve every name in {file}", soft_wrap=True)
    elif write:
        _write(target, lines)
        console().print(f"written  {shown(target)}: {count(len(lines), 'line')} to complete", soft_wrap=True)
    else:
        print(skeleton.render(lines), end="")
    if other_problems:
        errors().print(f"{count(other_problems, 'other problem')}: allranks check {file}", soft_wrap=True)


def _has_virtual_environment(use: Use, lookup: AssetLookup) -> bool:
    from allranks.local import interpreters
    from allranks.plan.assets import asset_id

    return use.asset.kind == asset_id.ENVIRONMENT and bool(interpreters.folder_of(use.asset.name, lookup.folder))


def _write(target: Path, lines: tuple[MissingLine, ...]) -> None:
    from allranks.plan.assets import skeleton

    try:
        before = target.read_text(encoding="utf-8") if target.exists() else ""
        target.write_text(skeleton.merge(before, lines), encoding="utf-8")
    except OSError as error:
        found = f"cannot be written: {error.strerror}"
        raise InputError(Problem(shown(target), found, "a writable file", "run it without --write")) from None
