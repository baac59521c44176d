"""`allranks run` and `allranks resume`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import (
    FileArgument,
    FolderOption,
    GpusOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    RetriesOption,
    RunArgument,
    SetOption,
    SlotsOption,
    TrackOption,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from allranks.plan.graph import Plan
    from allranks.runs.observer import Observer
    from allranks.runs.records import RunRecord
    from allranks.runs.workspace import Workspace


def run(
    file: FileArgument,
    settings: SetOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan with the environment of each rank; start nothing.")
    ] = False,
    instances: InstancesOption = InstancesChoice.AUTO,
    force_rerun: Annotated[
        bool, typer.Option("--force-rerun", help="Run every step, also where an earlier result could be reused.")
    ] = False,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run a pipeline on this machine, as Azure ML would.

    For example: allranks run pipelines/image_classification.py --set epochs=3
    """
    from allranks.local.engine import Options
    from allranks.local.engine import run as run_plan
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    given = settings_of(settings)
    if dry_run:
        _print_dry_run(file, given, place, instances.value, json)
        return
    plan = _kept(file, given, place)
    options = Options(instances.value, force_rerun, retries, slots, gpus, track)
    _finish(lambda observer: run_plan(plan, place, options, observer), json)


def resume(
    identity: RunArgument,
    instances: InstancesOption = InstancesChoice.AUTO,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Go on with a run that did not finish.

    It was interrupted, stopped, or failed. Finished steps are not done again.
    """
    from allranks.local.engine import Options
    from allranks.local.engine import resume as resume_run
    from allranks.runs.workspace import Workspace

    options = Options(instances.value, False, retries, slots, gpus, track)
    _finish(lambda observer: resume_run(identity, Workspace.at(workspace), options, observer), json)


def _kept(file: str, settings: dict[str, str], workspace: Workspace) -> Plan:
    """The plan with its code in the workspace, which is not touched before the plan is known to be right."""
    import tempfile
    from pathlib import Path

    from allranks.plan.reader import snapshot

    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan = _read(file, settings, Path(snapshots))
        workspace.make()
        return snapshot.keep(plan, workspace.snapshots)


def _read(file: str, settings: dict[str, str], snapshots: Path) -> Plan:
    from allranks.errors import InputError
    from allranks.local import requirements
    from allranks.plan.reader import read_plan

    plan = read_plan(file, settings, snapshots)
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
    from allranks.cli.problems import print_warnings
    from allranks.cli.views.plan import plan_json, print_plan
    from allranks.local import preview
    from allranks.plan import codec
    from allranks.plan.check import warnings
    from allranks.plan.secrets import shown

    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan = _read(file, settings, Path(snapshots))
    # What is rendered from it has no secrets either.
    plan = codec.loads(to_json(shown(from_json(codec.dumps(plan)))))
    kind = preview.kind_of(instances)
    environments = preview.environments(plan, workspace, kind)
    commands = preview.commands(plan, workspace, kind)
    if json:
        print(plan_json(plan, environments, commands))
    else:
        print_plan(console(), plan, environments, commands)
    print_warnings(warnings(plan, date.today()))


def _finish(execute: Callable[[Observer], RunRecord], json: bool) -> None:
    """Runs with somebody to watch, prints the end, and exits with the code that says how it went."""
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console, errors
    from allranks.cli.views.lines import PlainLines
    from allranks.cli.views.live import LiveTree
    from allranks.local.engine import DiskFullError
    from allranks.runs.records import Status

    # With --json, stdout is for a program: what a person reads goes to stderr.
    out = errors() if json else console()
    watcher = LiveTree(out) if out.is_terminal else PlainLines(out)
    try:
        with watcher:
            record = execute(watcher)
    except DiskFullError as error:
        errors().print(
            f"error: {error}\n  every process of the run has ended; free some space, then: allranks resume latest"
        )
        sys.exit(1)
    if json:
        print(to_json(record))
    if record.status is Status.FAILED:
        sys.exit(1)
    if record.status is Status.CANCELED:
        sys.exit(130)
