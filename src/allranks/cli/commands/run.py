"""`allranks run`: run a pipeline on this machine."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from allranks import packages
from allranks.catalog.find import run_target
from allranks.cli.command import AS_AZURE
from allranks.cli.execute import execute_job
from allranks.cli.options import (
    DryRunOption,
    EnvironmentOption,
    FileArgument,
    FolderOption,
    ForceOption,
    JsonOption,
    LayoutOption,
    RunOptions,
    SampleOption,
    SelectionOptions,
    SetOption,
    StandInOption,
    StreamedRankOption,
)
from allranks.cli.parameters import argument, option
from allranks.cli.values import layout_settings, settings_of, stand_ins_of, streamed
from allranks.cli.views.plan import print_dry_run
from allranks.history import registered
from allranks.plan.graph import Plan
from allranks.plan.reader import lookup_of, opened
from allranks.sdk.uploads import Upload, uploads_of
from allranks.workspace import Workspace

_AS_AZURE = """Execute a script or a notebook unchanged, with its own arguments. Its MLClient and its credentials are
replaced: it submits jobs, streams them, and reads their outputs here."""
_ARGUMENTS = f"Arguments of the script, only with {AS_AZURE}."


# Over 60 lines: its options are a third of it.
def run(
    file: FileArgument,
    arguments: Annotated[list[str] | None, argument("ARGUMENT", _ARGUMENTS)] = None,
    *,
    settings: SetOption = None,
    stand_ins: StandInOption = None,
    layout: LayoutOption = "",
    chosen: SelectionOptions,
    environment: EnvironmentOption = "host",
    dry_run: DryRunOption = False,
    force_rerun: ForceOption = False,
    sample: SampleOption = "",
    stream: Annotated[bool, option("--stream", "Print what rank 0 of each step prints, or --rank.")] = False,
    rank: StreamedRankOption = "",
    execution: RunOptions,
    folder: FolderOption = None,
    json: JsonOption = False,
    as_azure: Annotated[bool, option(AS_AZURE, _AS_AZURE)] = False,
) -> None:
    """Run a pipeline, or a single component, on this machine.

    A component is named by its folder, in the project or in the library, or by its spec. Its inputs are given by --set.

    For example: allranks run pipelines/image_classification.py --set num_train_epochs=3

    A script that submits jobs: allranks run --as-azure submit_jobs.py --epochs 3
    """
    workspace = Workspace.at(folder)
    if as_azure:
        of_file = {
            "--set": settings_of(settings),
            "--layout": layout,
            "--stand-in": stand_ins,
            "--dry-run": dry_run,
            "--json": json,
            "--stream": stream or rank,
        }
        if unused := next((name for name, value in of_file.items() if value), "a step" if chosen.selection() else ""):
            raise typer.BadParameter(f"{unused} cannot be given: {AS_AZURE} executes the script unchanged")
        options = execution.options(force_rerun=force_rerun, sample=sample, environment=environment)
        run_as_azure = packages.hook("run_as_azure", f"allranks run {AS_AZURE}")
        sys.exit(run_as_azure(file, arguments or (), workspace, options))
    if arguments:
        raise typer.BadParameter(f"found {arguments[0]!r}; only with {AS_AZURE} can the file have arguments")
    values = layout_settings(layout) | settings_of(settings) | stand_ins_of(stand_ins)
    if ":" not in file:
        file = run_target(file)
    selection = chosen.selection()
    if dry_run:

        def read(snapshots: Path) -> tuple[Plan, list[Upload]]:
            with opened(file, values, lookup_of(file, values, registered.of(workspace))) as job:
                return job.plan(snapshots), uploads_of(job.request())

        print_dry_run(read, workspace, execution.options(selection=selection, environment=environment), json)
        return
    options = execution.options(
        force_rerun=force_rerun,
        sample=sample,
        selection=selection,
        environment=environment,
        target=os.path.abspath(file),
        settings=values,
    )
    shown = streamed(rank or "0") if stream or rank else ""
    execute_job(lambda: file, workspace, options, json, verbose=execution.verbose, stream=shown)
