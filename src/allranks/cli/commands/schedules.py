"""`allranks schedules`: run pipelines on a schedule, on this machine or on Azure ML."""

import time
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from allranks.azure import schedules as remote
from allranks.azure.schedules import Applied, Change
from allranks.azure.workspace import WorkspaceOptions, sign_in
from allranks.cli import streams
from allranks.cli.console import console, print_result, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import (
    AzureOptions,
    ChangesOption,
    ComputeOption,
    FolderOption,
    GpusOption,
    InstancesOption,
    JsonOption,
    RetriesOption,
    SchedulesArgument,
    SlotsOption,
    TrackOption,
    option,
)
from allranks.local import stop_signals
from allranks.scheduler import reading, running
from allranks.scheduler.ledger import Ledger, SchedulerPaths
from allranks.scheduler.scheduler import Event, Scheduler
from allranks.schedules.finding import Schedule, check_target, find_schedules
from allranks.schedules.triggers import firings, in_words, in_zone
from allranks.sdk.session import session
from allranks.text import clock, plain
from allranks.workspace import Workspace

app = lazy_group(
    __name__,
    {
        "run": "Run pipelines on this machine when their schedules fire.",
        "next": "List when schedules fire next, without contacting Azure.",
        "apply": "Create and update the schedules of a workspace.",
        "list": "List the declared schedules and those of a workspace.",
        "enable": "Enable a schedule of an Azure ML workspace.",
        "disable": "Disable a schedule of an Azure ML workspace.",
        "delete": "Delete a schedule of an Azure ML workspace.",
    },
    help="Run pipelines on a schedule, on this machine or on Azure ML.",
)

ScheduleArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


# Over 60 lines: its options are half of it.
@streams.unbroken()
def run(
    target: SchedulesArgument = None,
    instances: InstancesOption = "auto",
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run pipelines on this machine when their schedules fire.

    Runs until it is stopped. Ctrl-C and SIGTERM stop the scheduler and its runs, which the next scheduler resumes. If
    the scheduler is killed, its runs stop too, and no firing is lost or repeated. Of the firings that were due while no
    scheduler or the previous run was running, it runs the last one.
    """
    if target is not None:
        check_target(target)  # before the workspace is created
    place = SchedulerPaths(Workspace.at(folder))
    options = {"instances": instances, "retries": retries, "slots": slots, "gpus": gpus, "track": track}
    with place.hold() as lock:
        reading.read(place, target)
        with Ledger(place.ledger) as ledger:
            scheduler = Scheduler(ledger, partial(running.start, place, options, lock), partial(_print_event, json))
            with stop_signals.counted(scheduler.stop):
                scheduler.run()


def _print_event(as_json: bool, event: Event) -> None:
    """Print ``12:03:04  nightly  fires: run nightly-20260105T013000Z``, or a line of JSON."""
    if as_json:
        data = {"event": event.kind, **({"schedule": event.schedule} if event.schedule else {}), **event.values}
        print(dumps(data, default=datetime.isoformat), flush=True)
        return
    line = "  ".join(part for part in (clock(time.time()), event.schedule, event.text) if part)
    console().print(" ".join(plain(line).splitlines()), soft_wrap=True, markup=False, highlight=False)


def next_(
    amount: Annotated[int, typer.Argument(metavar="N", min=1, help="How many firings of each schedule.")] = 5,
    target: SchedulesArgument = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List when schedules fire next, without contacting Azure."""
    now = datetime.now(UTC)
    created = _created(folder)
    with session(client=False):
        found = find_schedules(target, required=not created)
    schedules = [*found, *created]
    moments = [list(islice(firings(schedule.trigger, now, now), amount)) for schedule in schedules]
    if json:
        rows = [
            {
                "name": schedule.name,
                "declared_in": schedule.where,
                "time_zone": schedule.trigger.time_zone,
                "firings": [each.isoformat() for each in following],
            }
            for schedule, following in zip(schedules, moments, strict=True)
        ]
        print(to_json(rows))
        return
    out = console()
    for schedule, following in zip(schedules, moments, strict=True):
        zone = schedule.trigger.time_zone
        out.print(plain(f"{schedule.name}  {in_words(schedule.trigger)}, {zone}"), soft_wrap=True)
        for each in following:
            out.print(f"  {in_zone(each, zone)}   {_utc(each)}", soft_wrap=True)
        if not following:
            out.print("  ended")


def _created(folder: Path | None) -> list[Schedule]:
    return SchedulerPaths(Workspace.at(folder)).created()


def apply(
    target: SchedulesArgument = None,
    compute: ComputeOption = "",
    dry_run: ChangesOption = False,
    prune: Annotated[
        bool, option("--prune", "Delete schedules that were applied from these files and are no longer declared.")
    ] = False,
    *,
    azure: AzureOptions,
    json: JsonOption = False,
) -> None:
    """Create and update the schedules of a workspace.

    The declared schedules are applied. Unchanged schedules are skipped, and disabled schedules remain disabled.
    """
    out = console()
    done = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}

    def report(change: Change) -> None:
        if json:
            return
        would = change.action if change.action == "unchanged" else f"would {change.action}"
        out.print(plain(f"{change.name}: {would if dry_run else done[change.action]}"), soft_wrap=True)
        for difference in change.differences:
            before = f"{difference.before} → " if difference.before else ""
            out.print(plain(f"  {difference.key}: {before}{difference.after}"), soft_wrap=True)

    order = remote.Order(*sign_in(azure), target, compute, prune)
    planned = remote.changes(order)
    if dry_run:
        for change in planned:
            report(change)
    else:
        remote.apply(order, planned, report)
    if json:
        print(to_json(planned))


def list_(
    target: SchedulesArgument = None, folder: FolderOption = None, *, azure: AzureOptions, json: JsonOption = False
) -> None:
    """List the declared schedules and those of a workspace.

    The schedules that LocalClient has created on this machine are listed too.
    """
    now = datetime.now(UTC)
    applied = remote.applied(sign_in(azure)[0])
    declared = {schedule.name: schedule for schedule in _created(folder)}
    with session(client=False):
        found = find_schedules(target, required=not declared)
    declared |= {each.name: each for each in found}
    rows: list[dict[str, Any]] = []
    out = console()
    for name in sorted({*declared, *applied}):
        row, lines = _listed(name, declared.get(name), applied.get(name), now)
        rows.append(row)
        for line in () if json else lines:
            out.print(plain(line), soft_wrap=True)
    if json:
        print(to_json(rows))


def _listed(
    name: str, own: Schedule | None, applied: Applied | None, now: datetime
) -> tuple[dict[str, Any], list[str]]:
    trigger = own.trigger if own else applied.trigger if applied else None
    state = "not applied" if applied is None else "enabled" if applied.enabled else "disabled"
    differs = bool(own and applied and remote.trigger_differs(own.trigger, applied.trigger))
    due = next(firings(trigger, now, now), None) if trigger and state != "disabled" else None
    row = {
        "name": name,
        "declared_in": own.where if own else None,
        "state": state,
        "differs": differs,
        "trigger": in_words(trigger) if trigger else None,
        "time_zone": trigger.time_zone if trigger else None,
        "next": due.isoformat() if due else None,
    }
    lines = [f"{name}  {state}{', applied with another trigger' if differs else ''}"]
    lines.append(f"  {own.where if own else 'not declared here'}")
    if trigger:
        lines.append(f"  {in_words(trigger)}, {trigger.time_zone}")
        lines += [f"  next: {in_zone(due, trigger.time_zone)}, {_utc(due)}"] if due else []
    return row, lines


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def enable(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Enable a schedule of an Azure ML workspace."""
    _switch(name, azure, json, on=True)


def disable(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Disable a schedule of an Azure ML workspace."""
    _switch(name, azure, json, on=False)


def _switch(name: str, where: WorkspaceOptions, json: bool, *, on: bool) -> None:
    client, _ = sign_in(where)
    changed = remote.switch(client, remote.applied(client), name, on=on)
    state = "enabled" if on else "disabled"
    value = {"name": name, "state": state, "changed": changed}
    print_result(json, value, f"{name}: {state}{'' if changed else ' already'}")


def delete(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Delete a schedule of an Azure ML workspace.

    The runs that it started are not deleted.
    """
    client, _ = sign_in(azure)
    remote.delete(client, remote.named(remote.applied(client), name))
    print_result(json, {"name": name, "state": "deleted"}, f"{name}: deleted")
