"""Execute a run with a view of its progress. Shared by the commands that run something."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from allranks.local.options import Options
    from allranks.runs.observer import Observer
    from allranks.runs.records import RunRecord
    from allranks.runs.workspace import Workspace


def execute_job(job: Callable[[], Any], file: str, workspace: Workspace, options: Options, json: bool) -> None:
    """Read a job and execute it, as `execute` does. Import meanwhile what a run of the same file needed before.

    job: returns the job, as `jobs.read` takes it
    """
    from importlib.util import find_spec

    from allranks.local.forkserver.early import EarlyForkServer
    from allranks.local.tracking.process import EarlyTracker

    # MLflow takes as long to import as everything below.
    with (
        EarlyTracker(workspace, enabled=options.track and find_spec("mlflow") is not None) as tracker,
        EarlyForkServer(workspace, file, enabled=not options.cold) as fork_server,
    ):
        from allranks.api import jobs
        from allranks.local import engine

        plan = jobs.read(job(), options.settings, workspace, track=options.track)
        execute(
            lambda observer: engine.run(plan, workspace, options, observer, tracker=tracker, fork_server=fork_server),
            json,
        )


def execute(run: Callable[[Observer], RunRecord], json: bool, *, prints_record: bool = True) -> None:
    """Call `run` with an observer that shows its progress, and print the result.

    json:          whether standard output is for a program
    prints_record: whether that program gets the record

    Exit with 1 if the run fails or the disk is full, and with 130 if the run is canceled. Once nobody reads the output,
    as in ``allranks run FILE | head -1``, the run continues without any.
    """
    from allranks.cli import streams

    with streams.unbroken():
        _execute(run, json, prints_record)


def _execute(run: Callable[[Observer], RunRecord], json: bool, prints_record: bool) -> None:
    from allranks.cli.console import console, errors
    from allranks.cli.views.json import to_json
    from allranks.cli.views.lines import PlainLines
    from allranks.cli.views.live import LiveTree
    from allranks.local.engine import DiskFullError
    from allranks.runs.records import Status

    # With --json, stdout is for a program; the view goes to stderr.
    out = errors() if json else console()
    watcher = LiveTree(out) if out.is_terminal and not out.is_dumb_terminal else PlainLines(out)
    try:
        with watcher:
            record = run(watcher)
    except DiskFullError as error:
        errors().print(
            f"error: {error}\n  every process of the run has ended; free some space, then: allranks resume latest\n"
            "  more: allranks explain disk-full"
        )
        sys.exit(1)
    if json and prints_record:
        print(to_json(record))
    if record.status is Status.FAILED:
        sys.exit(1)
    if record.status is Status.CANCELED:
        sys.exit(130)
