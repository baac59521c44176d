"""`allranks migrate`: turn scripts of SDK v1 into pipelines of azure-ai-ml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from allranks.cli.console import print_result
from allranks.cli.options import JsonOption, option
from allranks.errors import InputError, Problem
from allranks.runs.formatting import count


def migrate(
    source: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="A script or notebook of SDK v1, or a folder.")],
    out: Annotated[
        Path | None, option("--out", "The new folder to write. By default NAME_v2 beside the file or folder.", "DIR")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Turn scripts of SDK v1 into pipelines of azure-ai-ml.

    The script is read, not run. Each job becomes a component with its environment, and the script a pipeline in Python
    with the script's comments. What is not carried over, or not exactly, is printed and listed in migration.md, with
    its line, the reason and what to do. The code of the jobs is not copied or changed.
    """
    try:
        from allranks.migrate import migrate as write
        from allranks.migrate import require_new, sources
    except ModuleNotFoundError as error:
        found, fix = f"{error.name} is not installed", 'pip install "allranks[migrate]"'
        raise InputError(Problem("allranks migrate", found, "libcst, which reads Python", fix)) from None
    from allranks.cli.views.problems import print_warnings

    files = sources(source)
    folder = out or source.with_name(f"{source.stem or source.absolute().name}_v2")
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
        jobs = len(done.content.jobs)
        lines.append(f"{done.pipeline}: {count(jobs, 'step')}, {count(len(done.findings), 'finding')}")
        rows.append({"source": str(file), "pipeline": str(done.pipeline), "findings": list(map(vars, done.findings))})
    if not written:
        raise InputError.of(refused)
    print_warnings(refused)
    print_result(json, rows, *lines, f"  allranks check {written[0].pipeline}")
