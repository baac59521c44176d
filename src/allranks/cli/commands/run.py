"""`allranks run`: run a pipeline on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.execute import execute_job
from allranks.cli.option_groups import RunOptions
from allranks.cli.options import (
    DryRunOption,
    FileArgument,
    FolderOption,
    FromOption,
    JsonOption,
    LayoutOption,
    OnlyOption,
    UntilOption,
)
from allranks.cli.params import ParamsOption, SetOption, layout_settings, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from allranks.plan.graph import Plan
    from allranks.sdk.uploads import Upload


def run(
    file: FileArgument,
    settings: SetOption = None,
    params: ParamsOption = None,
    layout: LayoutOption = "",
    start: FromOption = None,
    only: OnlyOption = None,
    until: UntilOption = None,
    dry_run: DryRunOption = False,
    force_rerun: Annotated[
        bool, typer.Option("--force-rerun", help="Run every step, even if an earlier result could be reused.")
    ] = False,
    *,
    execution: RunOptions,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run a pipeline, or one component alone, on this machine.

    A component is named by its folder, in the project or in the library, or by its spec. Its inputs are given by --set.

    For example: allranks run pipelines/image_classification.py --set num_train_epochs=3
    """
    import os

    from allranks.local.selection import Selection
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    values = layout_settings(layout) | settings_of(settings, params)
    if file.isidentifier():  # what finds components takes time to import
        from allranks.components.find import run_target

        file = run_target(file)
    selection = Selection.of(start, only, until)
    if dry_run:
        from allranks.cli.views.dry_run import print_dry_run
        from allranks.plan.reader import lookup_of, opened
        from allranks.sdk.uploads import uploads_of

        def read(snapshots: Path) -> tuple[Plan, list[Upload]]:
            with opened(file, values, lookup_of(file, values, place)) as job:
                return job.plan(snapshots), uploads_of(job.job)

        print_dry_run(read, place, execution.instances.value, execution.mpi.value, selection, json)
        return
    options = execution.of(force_rerun=force_rerun, selection=selection, target=os.path.abspath(file), settings=values)
    execute_job(lambda: file, file, place, options, json)
