"""`allranks schedules`: run pipelines on a schedule, on this machine or on Azure ML."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from allranks.azure import schedules as remote
from allranks.azure.schedules import Change
from allranks.azure.workspace import named, sign_in
from allranks.cli import streams
from allranks.cli.console import console, print_result, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import (
    AzureOptions,
    ChangesOption,
    ComputeOption,
    FolderOption,
    JsonOption,
    MachineOptions,
    SchedulesArgument,
)
from allranks.cli.parameters import argument, option
from allranks.cli.views import schedules as schedule_view
from allranks.errors import InputError, Problem, did_you_mean
from allranks.history.records import Status
from allranks.local import stop_signals
from allranks.scheduler import events, notifier, reading, running
from allranks.scheduler.data_trigger import looking
from allranks.scheduler.ledger import CREATED, Entry, Ledger, run_name
from allranks.scheduler.paths import SchedulerPaths
from allranks.scheduler.scheduler import Scheduler
from allranks.schedules.finding import check_target, find_schedules
from allranks.schedules.triggers import firings, in_words
from allranks.sdk.paths import shown
from allranks.sdk.session import session
from allranks.text import local_time, plain
from allranks.workspace import Workspace

app = lazy_group(
    __name__,
    {
        "run": "Run pipelines on this machine when their schedules fire.",
        "next": "List when schedules fire next, without contacting Azure.",
        "apply": "Create and update the schedules of a workspace.",
        "list": "List the schedules of this machine or of a workspace, and their state.",
        "history": "List the firings of a schedule of this machine, with their results.",
        "trigger": "Run the pipeline of a schedule now, also if it is disabled.",
        "enable": "Enable a schedule of this machine or of a workspace.",
        "disable": "Disable a schedule of this machine or of a workspace.",
        "delete": "Delete a schedule of an Azure ML workspace.",
    },
    help="Run pipelines on a schedule, on this machine or on Azure ML.",
)

ScheduleArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
_FILE = "A file or folder with schedules, by default pipelines/ in this folder or a parent."
NamesArgument: TypeAlias = Annotated[
    list[str] | None, argument("[NAME]... [FILE|FOLDER]", f"Names of schedules, by default all. {_FILE}")
]
NameArgument: TypeAlias = Annotated[list[str], argument("NAME [FILE|FOLDER]", f"The schedule's name. {_FILE}")]


@dataclass(frozen=True)
class WhereOptions(AzureOptions):
    """The schedules of this machine or of a workspace."""

    folder: FolderOption = None
    local: Annotated[
        bool, option("--local", "The schedules of this machine. Default: those of the workspace, if one is known.")
    ] = False

    @property
    def paths(self) -> SchedulerPaths:
        return SchedulerPaths(Workspace.at(self.folder))

    def client(self) -> Any:
        """Return a client for the workspace; None if the schedules of this machine are meant."""
        known = named(self)
        is_named = known.subscription_id or known.resource_group or known.workspace_name
        return sign_in(self)[0] if is_named and not self.local else None


@streams.unbroken()
def run(
    words: NamesArgument = None,
    *,
    machine: MachineOptions,
    notify: Annotated[
        str,
        option(
            "--notify",
            "Webhook or command that receives a JSON message when a run fails, recovers, or reuses all results, and "
            "when a firing is missed or cannot start.",
            "URL|COMMAND",
        ),
    ] = "",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run pipelines on this machine when their schedules fire.

    Runs until it is stopped. Ctrl-C and SIGTERM stop the scheduler and its runs, which the next scheduler resumes. If
    the scheduler is killed, its runs stop too, and no firing is lost or repeated. Of the firings that were due while no
    scheduler or the previous run was running, it runs the last one.
    """
    target, names = _sorted(words)
    place, send = SchedulerPaths(Workspace.at(folder)), notifier.sender(notify) if notify else None
    report = partial(schedule_view.print_event, json)
    with place.hold() as lock:
        reading.read(place, target)
        with Ledger(place.ledger) as ledger, looking(place) as look:
            only = frozenset(_entry(place, name).name for name in names)
            judge, start = partial(events.of_end, place), partial(running.start, place, vars(machine), lock)
            scheduler = Scheduler(ledger, start, report, only=only, look=look, judge=judge, notifies=send is not None)
            delivery = notifier.delivery(place.ledger, send, report) if send else nullcontext()
            with stop_signals.counted(scheduler.stop), delivery:
                scheduler.run()


def _sorted(words: Sequence[str] | None) -> tuple[Path | None, list[str]]:
    """Split arguments, which are in any order, into the file or folder and the names of schedules.

    Raise InputError for a second path, and for one that cannot declare schedules.
    """
    paths = [word for word in words or () if {"/", "."} & set(word) or os.path.exists(word)]
    if len(paths) > 1:
        raise InputError(Problem(paths[1], f"a second file or folder, after {paths[0]}", "one", "name their folder"))
    for path in paths:
        check_target(Path(path))
    return (Path(paths[0]) if paths else None), [word for word in words or () if word not in paths]


def _one(words: Sequence[str]) -> tuple[Path | None, str]:
    target, names = _sorted(words)
    if len(names) != 1:
        found = ", ".join(names) or "no name of a schedule"
        raise InputError(Problem("the arguments", found, "the name of one schedule", "allranks schedules list"))
    return target, names[0]


def _entry(place: SchedulerPaths, name: str, found: str = "there is no schedule of that name here") -> Entry:
    """Return a schedule of this machine. Raise InputError if there is none of that name. found: for the message"""
    entries = place.entries()
    if name not in entries:
        fix = did_you_mean(name, entries, "allranks schedules list")
        raise InputError(Problem(f"schedule {name}", found, ", ".join(entries), fix))
    return entries[name]


def next_(
    words: Annotated[
        list[str] | None, argument("[N] [FILE|FOLDER]", f"How many firings of each schedule, by default 5. {_FILE}")
    ] = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List when schedules fire next, without contacting Azure."""
    now = datetime.now(UTC)
    target, numbers = _sorted(words)
    if not all(word.isdecimal() and int(word) for word in numbers):
        raise typer.BadParameter(f"found {' '.join(numbers)}, expected a number of firings, and a file or folder")
    amount = int(numbers[0]) if numbers else 5
    created = SchedulerPaths(Workspace.at(folder)).created()
    with session(client=False):
        schedules = [*find_schedules(target, required=not created), *created]
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
        out.print(plain(f"{schedule.name}  {in_words(schedule.trigger)}, {schedule.trigger.time_zone}"), soft_wrap=True)
        if schedule.policy.on_change:
            out.print(plain(f"  on this machine {schedule.policy}, instead"), soft_wrap=True)
        for each in following:
            out.print(f"  {local_time(each)}", soft_wrap=True)
        if not following:
            out.print("  ended")


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


def list_(target: SchedulesArgument = None, *, where: WhereOptions, json: JsonOption = False) -> None:
    """List the schedules of this machine or of a workspace, and their state.

    Without a workspace, or with --local: the declared schedules and those that LocalClient has created, each with its
    last run, and the process of the scheduler. Else: the declared schedules and those of the workspace.
    """
    now = datetime.now(UTC)
    client, place = where.client(), where.paths
    declared = {schedule.name: schedule for schedule in place.created()}
    with session(client=False):
        declared |= {each.name: each for each in find_schedules(target, required=not declared)}
    pid, entries, applied = place.scheduler(), place.entries(), remote.applied(client) if client else {}
    listed = []
    for name in sorted({*declared, *applied}):
        own, entry = declared.get(name), entries.get(name)
        row, lines = schedule_view.listed(name, own, applied.get(name) if client else entry or own, now)
        if client is None:
            last = entry.last if entry else None
            row |= {"scheduler": pid, "last": last and {**vars(last), "at": last.at.isoformat()}}
            if last:
                status = last.status or ("waits for the next scheduler" if pid is None else "Running")
                status += f": {last.reason}" if last.reason else ""
                lines.append(f"  last: {local_time(last.at)}, run {last.run}  {status}")
        listed.append((row, lines))
    if json:
        print(to_json([row for row, _ in listed]))
        return
    scheduler = "no scheduler is running" if pid is None else f"the scheduler is process {pid}"
    for line in (*([] if client else [scheduler]), *(line for _, lines in listed for line in lines)):
        console().print(plain(line), soft_wrap=True)


def history(
    name: ScheduleArgument,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Number of firings, the latest first.")] = 20,
    page: Annotated[bool, option("--page", "Write a page of the runs, with their curves, into the workspace.")] = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List the firings of a schedule of this machine, with their results.

    The champion is the model's version that the schedule's runs had registered last.
    """
    place = SchedulerPaths(Workspace.at(folder))
    if not (rows := schedule_view.history(place, name)):
        _entry(place, name, "it has never fired here")
    if page:
        from allranks.history.page.runs_page import write_runs_page  # takes 0.1 s to import

        about = {"schedule": name, "champions": {row.run.id: row.champion for row in rows if row.run}}
        file = write_runs_page(place.workspace, [row.run for row in rows if row.run], {}, about)
        print_result(json, {"page": file}, f"written  {shown(file)}")
    elif json:
        print(to_json(rows[:limit]))
    else:
        schedule_view.print_history(rows[:limit])


def trigger(words: NameArgument, *, where: WhereOptions, json: JsonOption = False) -> None:
    """Run the pipeline of a schedule now, also if it is disabled.

    On this machine, a running scheduler starts it. Without one, this command does, and waits for its end.
    """
    target, name = _one(words)
    if client := where.client():
        job = remote.trigger(client, remote.applied(client), name)
        print_result(json, {"name": name, "run": job}, f"{name}: started {job}")
        return
    place, now = where.paths, datetime.now(UTC).replace(microsecond=0)
    if pid := place.scheduler():
        with Ledger(place.ledger) as ledger:
            ledger.add(_entry(place, name).name, now)
        print_result(json, {"name": name, "run": run_name(name, now)}, f"{name}: process {pid} starts it")
        return
    with place.hold() as lock:
        reading.read(place, target)
        with Ledger(place.ledger) as ledger:
            firing = ledger.add(_entry(place, name).name, now)
            report = partial(schedule_view.print_event, json)
            scheduler = Scheduler(ledger, partial(running.start, place, {}, lock), report)
            with stop_signals.counted(scheduler.stop):
                if firing:
                    scheduler.run_once(firing)
            if ledger.firing(run_name(name, now)).status != str(Status.COMPLETED):
                raise typer.Exit(1)


def enable(words: NameArgument, *, where: WhereOptions, json: JsonOption = False) -> None:
    """Enable a schedule of this machine or of a workspace."""
    _switch(words, where, json, on=True)


def disable(words: NameArgument, *, where: WhereOptions, json: JsonOption = False) -> None:
    """Disable a schedule of this machine or of a workspace.

    A local one stays disabled when schedulers start again. What it missed is not run later.
    """
    _switch(words, where, json, on=False)


def _switch(words: Sequence[str], where: WhereOptions, json: bool, *, on: bool) -> None:
    target, name = _one(words)
    if client := where.client():
        changed = remote.switch(client, remote.applied(client), name, on=on)
    else:
        changed = _switch_here(where.paths, target, name, on)
    state = "enabled" if on else "disabled"
    value = {"name": name, "state": state, "changed": changed}
    print_result(json, value, f"{name}: {state}{'' if changed else ' already'}")


def _switch_here(place: SchedulerPaths, target: Path | None, name: str, on: bool) -> bool:
    """Enable or disable a schedule of this machine. Return whether its state has changed."""
    if name not in place.entries() and place.scheduler() is None:
        with place.hold():
            reading.read(place, target)
    with Ledger(place.ledger) as ledger:
        entry = _entry(place, name)
        if entry.source == CREATED:
            fix = f'client.schedules.begin_{"enable" if on else "disable"}("{name}")'
            raise InputError(Problem(f"schedule {name}", "LocalClient has created it", "a declared schedule", fix))
        if entry.enabled != on:
            ledger.switch(name, datetime.now(UTC), on=on)
        return entry.enabled != on


def delete(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Delete a schedule of an Azure ML workspace.

    The runs that it started are not deleted.
    """
    client, _ = sign_in(azure)
    remote.delete(client, remote.named(remote.applied(client), name))
    print_result(json, {"name": name, "state": "deleted"}, f"{name}: deleted")
