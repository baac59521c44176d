"""`allranks run`: run a pipeline on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.execute import execute
from allranks.cli.options import (
    ColdOption,
    FileArgument,
    FolderOption,
    FromOption,
    GpusOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    MpiChoice,
    MpiOption,
    OnlyOption,
    RetriesOption,
    SlotsOption,
    StartTimeoutOption,
    TrackOption,
    UntilOption,
)
from allranks.cli.params import ParamsOption, SetOption, settings_of

if TYPE_CHECKING:
    from allranks.local.selection import Selection
    from allranks.runs.workspace import Workspace


def run(
    file: FileArgument,
    settings: SetOption = None,
    params: ParamsOption = None,
    layout: LayoutOption = "",
    start: FromOption = None,
    only: OnlyOption = None,
    until: UntilOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan, each rank's environment, and the copied files, without starting anything.",
        ),
    ] = False,
    instances: InstancesOption = InstancesChoice.AUTO,
    force_rerun: Annotated[
        bool, typer.Option("--force-rerun", help="Run every step, even if an earlier result could be reused.")
    ] = False,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    cold: ColdOption = False,
    mpi: MpiOption = MpiChoice.RSH,
    start_timeout: StartTimeoutOption = 20.0,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run a pipeline, or one component alone, on this machine.

    A component is named by its folder, in the project or in the library, or by its spec. Its inputs are given by --set.

    For example: allranks run pipelines/image_classification.py --set num_train_epochs=3
    """
    from importlib.util import find_spec

    from allranks.components.find import run_target
    from allranks.local.selection import Selection
    from allranks.local.tracking.process import EarlyTracker
    from allranks.local.warm.early import EarlyStarters
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    values = settings_of(settings, params) | layout_settings(layout)
    file = run_target(file)
    selection = Selection.of(start, only, until)
    if dry_run:
        _print_dry_run(file, values, place, instances.value, mpi.value, selection, json)
        return
    # MLflow takes as long to import as everything below.
    with (
        EarlyTracker(place, enabled=track and find_spec("mlflow") is not None) as tracker,
        EarlyStarters(place, file, enabled=not cold) as starters,
    ):
        from allranks.api import jobs
        from allranks.local import engine
        from allranks.local.options import Options

        plan = jobs.read(file, values, place, track=track)
        options = Options(
            instances.value,
            force_rerun,
            retries,
            slots,
            gpus,
            track,
            selection=selection,
            target=jobs.target_of(file),
            settings=values,
            cold=cold,
            mpi=mpi.value,
            start_timeout=start_timeout,
        )
        execute(lambda observer: engine.run(plan, place, options, observer, tracker=tracker, starters=starters), json)


def _print_dry_run(
    file: str,
    settings: dict[str, str],
    workspace: Workspace,
    instances: str,
    mpi: str,
    selection: Selection,
    json: bool,
) -> None:
    import tempfile
    from datetime import date
    from json import dumps as to_json
    from json import loads as from_json
    from pathlib import Path

    from allranks.cli.console import console
    from allranks.cli.errors import print_machine, print_warnings
    from allranks.cli.views.plan import plan_json, print_plan
    from allranks.cli.views.selection import print_selection
    from allranks.cli.views.uploads import print_uploads
    from allranks.errors import InputError
    from allranks.local import capacity, preview, requirements
    from allranks.local.selection import modes_of
    from allranks.plan import codec
    from allranks.plan.check import warnings
    from allranks.plan.reader import lookup_of, opened
    from allranks.plan.secrets import shown
    from allranks.sdk.uploads import uploads_of

    names = lookup_of(file, settings, workspace)
    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots, opened(file, settings, names) as job:
        plan = job.plan(Path(snapshots))
        modes = modes_of(plan.graph, selection)
        problems, lacking = requirements.separated(plan, mpi)
        if problems:
            raise InputError(*problems)
        uploads = uploads_of(job.job)
    # Remove secrets, so that the output contains none.
    plan = codec.loads(to_json(shown(from_json(codec.dumps(plan)))))
    kind = preview.kind_of(instances)
    if problems := requirements.of_instances(plan, mpi, kind, workspace.run_folder(preview.RUN)):
        raise InputError(*problems)
    previews = preview.previews(plan, workspace, kind, mpi)
    if json:
        print(plan_json(plan, previews, uploads))
    else:
        print_plan(console(), plan, previews)
        print_uploads(console(), uploads)
        if selection:
            print_selection(console(), plan, modes)
    print_warnings([*warnings(plan, date.today()), *capacity.warnings(plan)])
    print_machine(lacking)
