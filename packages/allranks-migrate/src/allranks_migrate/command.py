"""`allranks migrate`: convert files of SDK v1 to files of azure-ai-ml."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.console import print_result
from allranks.cli.options import FolderOption, JsonOption
from allranks.cli.parameters import option
from allranks.errors import InputError, Problem
from allranks.text import count

if TYPE_CHECKING:
    from allranks_migrate import Migration


def migrate(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="A script, notebook or DistributedComponent of SDK v1, or a folder."
        ),
    ],
    out: Annotated[
        Path | None, option("--out", "The new folder to write. By default NAME_v2 beside the file or folder.", "DIR")
    ] = None,
    prove: Annotated[
        bool,
        option(
            "--prove",
            "Then run each job as v1 starts it, run the pipeline, and compare them by rank: arguments, variables, exit "
            "codes and outputs. Exit with 1 if they differ.",
        ),
    ] = False,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Turn scripts of SDK v1 into pipelines of azure-ai-ml, and DistributedComponents into command components.

    The script is read, not run. Each job becomes a component with its environment, and the script a pipeline in Python
    with the script's comments. What is not carried over, or not exactly, is printed and listed in migration.md, with
    its line, the reason and what to do. The code of the jobs is not copied or changed.
    """
    from allranks.cli.console import print_warnings
    from allranks_migrate import migrate as write
    from allranks_migrate import require_new, sources

    files = sources(source)
    place = source.absolute()
    folder = out or Path(os.path.relpath(place.with_name(f"{place.stem}_v2")))
    require_new(folder)
    written, refused, rows, lines = [], list[Problem](), list[dict[str, object]](), list[str]()
    for file in files:
        target = folder / file.relative_to(source).with_suffix("") if source.is_dir() else folder
        try:
            done = write(file, target)
        except InputError as error:
            refused += error.problems
            continue
        written.append(done)
        print_warnings(done.findings)
        what = count(len(done.content.jobs), "step") if done.content else "a command component"
        lines.append(f"{done.file}: {what}, {len(done.findings) or 'nothing'} to look at")
        kind = "pipeline" if done.content else "component"
        rows.append({"source": str(file), kind: str(done.file), "findings": list(map(vars, done.findings))})
    if not written:
        raise InputError.of(refused)
    print_warnings(refused)
    compared = _prove(written, workspace, rows, lines) if prove else True
    print_result(json, rows, *lines, f"  allranks check {written[0].file}")
    if not compared:
        sys.exit(1)


def _prove(written: list[Migration], workspace: Path | None, rows: list[dict[str, object]], lines: list[str]) -> bool:
    """Prove each migration, add the comparisons to its row and to the lines, and return whether all ranks are equal."""
    from allranks.workspace import Workspace
    from allranks_migrate.proof import prove

    equal = True
    for done, row in zip(written, rows, strict=True):
        found = prove(done, Workspace.at(workspace))
        row["proof"] = list(map(vars, found))
        equal = equal and not any(one.differences for one in found)
        for one in found:
            what = f"arguments, {one.variables} variables, exit codes, {count(one.outputs, 'output file')}"
            lines.append(
                f"{one.step}: {count(one.ranks, 'rank')} " + ("differ:" if one.differences else f"equal: {what}")
            )
            lines += [f"  {text}" for text in one.differences]
    return equal
