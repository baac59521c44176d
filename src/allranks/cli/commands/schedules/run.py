"""`allranks schedules run`: fire schedules on this machine."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from allranks.cli.options import (
    FolderOption,
    GpusOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    RetriesOption,
    SchedulesArgument,
    SlotsOption,
    TrackOption,
)


class MissedChoice(str, Enum):
    """What becomes of firings that were missed."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


def run(
    target: SchedulesArgument = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Read no file: fire the schedules as they were read last.")
    ] = False,
    missed: Annotated[
        MissedChoice,
        typer.Option(
            "--missed",
            help="Firings that were due while no scheduler ran, or while the run before still did. skip: leave them "
            "out. once: run the last of them. all: run each.",
        ),
    ] = MissedChoice.ONCE,
    overlap: Annotated[
        bool, typer.Option("--overlap", help="Start a run although the one before of its schedule has not ended.")
    ] = False,
    instances: InstancesOption = InstancesChoice.AUTO,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Fire schedules on this machine until it is stopped.

    Each run is a process of its own. Killed, a scheduler loses and doubles nothing: the next one goes on. Ctrl-C and
    SIGTERM stop it and its runs, which go on with the next one too.
    """
    from allranks.cli.console import console, errors
    from allranks.cli.views.schedules import EventLines, JsonLines, LiveSchedules
    from allranks.errors import InputError, Problem
    from allranks.local.scheduler import reading, running
    from allranks.local.scheduler.clock import SystemClock
    from allranks.local.scheduler.ledger import Ledger
    from allranks.local.scheduler.place import SchedulesPlace
    from allranks.local.scheduler.scheduler import MissedPolicy, Scheduler
    from allranks.runs.workspace import Workspace

    if resume and target is not None:
        raise InputError(Problem("--resume", f"it reads no file, but {target} is named", "", "leave one of them out"))
    place = SchedulesPlace(Workspace.at(folder))
    options = {"instances": instances.value, "retries": retries, "slots": slots, "gpus": gpus, "track": track}
    out = errors() if json else console()
    watcher: EventLines | JsonLines
    if json:
        watcher = JsonLines(lambda line: print(line, flush=True))
    else:
        watcher = LiveSchedules(out) if out.is_terminal else EventLines(out)
    with place.hold():
        if not resume:
            reading.read(place, target)
        with Ledger(place.ledger) as ledger:
            if not ledger.schedules():
                fix = "name them once: allranks schedules run FILE"
                raise InputError(Problem(str(place.ledger), "it has no schedule yet", "", fix))
            stops: list[Scheduler] = []
            with SystemClock(lambda: stops[0].stop()) as clock, watcher:
                policy = MissedPolicy(missed.value)
                scheduler = Scheduler(
                    ledger,
                    place,
                    clock,
                    lambda firing, log: running.start(place, options, firing, log),
                    watcher,
                    policy,
                    overlap,
                )
                stops.append(scheduler)
                scheduler.run()
