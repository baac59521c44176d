"""Execute a run with a view of its progress. Shared by the commands that run something."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from allranks import engine_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from allranks.local.options import Options
    from allranks.runs.observer import Observer
    from allranks.runs.records import RunRecord
    from allranks.runs.workspace import Workspace


def execute_job(
    job: Callable[[], Any], file: str, workspace: Workspace, options: Options, json: bool, *, verbose: bool
) -> None:
    """Read a job and execute it, as `execute` does. Meanwhile import what an earlier run of the same file needed.

    job: returns the job, as `jobs.read` takes it
    """
    from importlib.util import find_spec

    from allranks.local.forkserver.early import EarlyForkServer
    from allranks.local.tracking.process import EarlyTracker

    _set_level(verbose)
    # MLflow takes as long to import as everything below.
    with (
        EarlyTracker(workspace, enabled=options.track and find_spec("mlflow") is not None) as tracker,
        EarlyForkServer(workspace, file, enabled=not options.cold) as fork_server,
    ):
        from allranks.api import jobs
        from allranks.cli.views.environments import Installations
        from allranks.cli.views.problems import print_warnings
        from allranks.local import engine

        with Installations() as report:
            plan = jobs.read(job(), options.settings, workspace, options, report=report, warn=print_warnings)
        execute(
            lambda observer: engine.run(plan, workspace, options, observer, tracker=tracker, fork_server=fork_server),
            json,
            verbose=verbose,
        )


def execute_again(
    again: Callable[..., RunRecord],
    identity: str,
    workspace: Workspace,
    options: Options,
    json: bool,
    *,
    verbose: bool,
    **settings: Any,
) -> None:
    """Execute a stored run by a function of `api.retry`, as `execute` does. settings: of that function"""
    from allranks.cli.views.environments import Installations
    from allranks.cli.views.problems import print_warnings

    def run(observer: Observer) -> RunRecord:
        with Installations() as report:
            return again(identity, workspace, options, observer, warn=print_warnings, report=report, **settings)

    execute(run, json, verbose=verbose)


def execute(
    run: Callable[[Observer], RunRecord], json: bool, *, verbose: bool = False, prints_record: bool = True
) -> RunRecord:
    """Call `run` with an observer that shows its progress, print the result, and return it.

    json:          whether standard output is for a program
    verbose:       whether the lines of the engine's log are printed to standard error
    prints_record: whether that program gets the record

    Exit with 1 if the run fails or the disk is full, and with 130 if the run is canceled. If the reader of the output
    goes away, as in ``allranks run FILE | head -1``, the run continues without output.
    """
    from allranks.cli import streams
    from allranks.cli.console import console, errors, to_json
    from allranks.cli.views.progress import view_of
    from allranks.local.engine import DiskFullError
    from allranks.runs.records import Status

    _set_level(verbose)
    with streams.unbroken():
        # With --json, stdout is for a program; the view goes to stderr.
        view = view_of(errors() if json else console(), plain=verbose)
        try:
            with view:
                if verbose:
                    from allranks.cli.views.engine_log import FollowedLog

                    with FollowedLog(view, errors()) as observer:
                        record = run(observer)
                else:
                    record = run(view)
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
    return record


def _set_level(verbose: bool) -> None:
    """Make the engine and its processes, which inherit the variable, log everything."""
    if verbose:
        os.environ[engine_log.LEVEL_VARIABLE] = "debug"
