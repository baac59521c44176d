"""`allranks init`: create a small project that runs at once."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from allranks.cli.agent_files import agent_files
from allranks.cli.console import print_result
from allranks.cli.options import JsonOption
from allranks.cli.parameters import option
from allranks.errors import InputError, Problem
from allranks.project.files import create, template
from allranks.project.files import pipeline as of_library
from allranks.text import count


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the project. It is created if it does not exist.")
    ] = Path(),
    pipeline: Annotated[
        str,
        option(
            "--from",
            "Copy this pipeline of the library instead, such as image_classification, language_model, finetuning, "
            "own_script, recurring_training or gradient_boosting.",
            "PIPELINE",
        ),
    ] = "",
    agents: Annotated[
        bool,
        option("--agents", "Write llms.txt and a skill for coding agents instead, for this version."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Create a small project that runs at once.

    It has components, a pipeline with a schedule, an environment and a notebook; with --from only a pipeline, whose
    components are imported from the library. Existing files are never changed: if one has other content, nothing is
    written.
    """
    if agents and pipeline:
        raise InputError(Problem("--agents", f"--from {pipeline} is given too", "one of them", "remove one"))
    contents = agent_files() if agents else of_library(pipeline) if pipeline else template()
    written = create(folder, contents)
    kept = [name for name in contents if name not in written]
    runs = [f"  allranks run {name}" for name in contents if name.startswith("pipelines/") and name.endswith(".py")]
    lines = [f"{folder}: {count(len(written), 'file')} written{f', {len(kept)} unchanged' if kept else ''}"]
    lines += [f"  cd {shlex.quote(str(folder))}"] * (folder.resolve() != Path.cwd())
    value = {"folder": str(folder), "written": written, "kept": kept}
    print_result(json, value, *lines, *runs[:1])
