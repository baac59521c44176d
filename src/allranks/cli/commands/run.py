"""`allranks run`: run a pipeline on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.execute import execute
from allranks.cli.options import (
    FileArgument,
    FolderOption,
    GpusOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    RetriesOption,
    SetOption,
    SlotsOption,
    TrackOption,
    settings_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from allranks.plan.graph import Plan
    from allranks.runs.workspace import Workspace


def run(
    file: FileArgument,
    settings: SetOption = None,
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
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run a pipeline on this machine.

    For example: allranks run pipelines/image_classification.py --set epochs=3
    """
    from allranks.cli.errors import print_warnings
    from allranks.local import capacity
    from allranks.local.engine import run as run_plan
    from allranks.local.options import Options
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    values = settings_of(settings)
    if dry_run:
        _print_dry_run(file, values, place, instances.value, json)
        return
    plan = _read_with_code(file, values, place)
    print_warnings(list(capacity.warnings(plan)))
    options = Options(instances.value, force_rerun, retries, slots, gpus, track)
    execute(lambda observer: run_plan(plan, place, options, observer), json)


def _read_with_code(file: str, settings: dict[str, str], workspace: Workspace) -> Plan:
    """Return the plan with its code copied into the workspace, which is not changed before the plan has been
    checked."""
    import tempfile
    from pathlib import Path

    from allranks.plan.reader import snapshot

    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan = _read(file, settings, Path(snapshots), workspace)
        workspace.make()
        return snapshot.save(plan, workspace.snapshots)


def _read(file: str, settings: dict[str, str], snapshots: Path, workspace: Workspace) -> Plan:
    from allranks.plan.reader import read_plan

    return _check(read_plan(file, settings, snapshots, workspace))


def _check(plan: Plan) -> Plan:
    """Return the plan. Raise InputError if it cannot run on this machine."""
    from allranks.errors import InputError
    from allranks.local import requirements

    if problems := requirements.problems(plan):
        raise InputError(*problems)
    return plan


def _print_dry_run(file: str, settings: dict[str, str], workspace: Workspace, instances: str, json: bool) -> None:
    import tempfile
    from datetime import date
    from json import dumps as to_json
    from json import loads as from_json
    from pathlib import Path

    from allranks.cli.console import console
    from allranks.cli.errors import print_warnings
    from allranks.cli.views.plan import plan_json, print_plan
    from allranks.cli.views.uploads import print_uploads
    from allranks.local import capacity, preview
    from allranks.plan import codec
    from allranks.plan.check import warnings
    from allranks.plan.reader import lookup_of, opened
    from allranks.plan.secrets import shown
    from allranks.sdk.uploads import uploads_of

    names = lookup_of(file, settings, workspace)
    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots, opened(file, settings, names) as job:
        plan = _check(job.plan(Path(snapshots)))
        uploads = uploads_of(job.job)
    # Remove secrets, so that the output contains none.
    plan = codec.loads(to_json(shown(from_json(codec.dumps(plan)))))
    kind = preview.kind_of(instances)
    previews = preview.previews(plan, workspace, kind)
    environments = {path: step_preview.ranks for path, step_preview in previews.items()}
    commands = {path: step_preview.command for path, step_preview in previews.items()}
    if json:
        print(plan_json(plan, environments, commands, uploads))
    else:
        print_plan(console(), plan, environments, commands)
        print_uploads(console(), uploads)
    print_warnings([*warnings(plan, date.today()), *capacity.warnings(plan)])
