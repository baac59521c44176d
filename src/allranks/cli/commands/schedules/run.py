"""`allranks schedules run`: fire schedules on this machine."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from allranks.cli import streams
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
    """What to do with missed firings."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


@streams.unbroken()
def run(
    target: SchedulesArgument = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Use the schedules of the previous start instead of reading files.")
    ] = False,
    missed: Annotated[
        MissedChoice,
        typer.Option(
            "--missed",
            help="What to do with firings that were due while no scheduler ran, or while the previous run was active. "
            "skip: drop them. once: run the last one. all: run each of them.",
        ),
    ] = MissedChoice.ONCE,
    overlap: Annotated[
        bool, typer.Option("--overlap", help="Start a run even if the previous run of the schedule has not ended.")
    ] = False,
    instances: InstancesOption = InstancesChoice.AUTO,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run pipelines on this machine when their schedules fire.

    Runs until it is stopped. Each run is a separate process. If the scheduler is killed, the next one continues, and no
    firing is lost or repeated. Ctrl-C and SIGTERM stop the scheduler and its runs; the next scheduler resumes those
    runs.
    """
    from allranks.cli.console import console, errors
    from allranks.cli.views.schedules import EventLines, JsonLines, LiveSchedules
    from allranks.errors import InputError, Problem
    from allranks.local.scheduler import reading, running
    from allranks.local.scheduler.ledger import Ledger, SchedulesPlace
    from allranks.local.scheduler.scheduler import MissedPolicy, Scheduler, SystemClock
    from allranks.runs.workspace import Workspace
    from allranks.schedules.finding import check_target

    if resume and target is not None:
        raise InputError(
            Problem("--resume", f"{target} is given too, but --resume reads no file", "", "remove one of them")
        )
    if target is not None:
        check_target(target)  # before the workspace is created
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
                fix = "name a file the first time: allranks schedules run FILE"
                raise InputError(Problem(str(place.ledger), "it contains no schedule yet", "", fix))
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
