"""Execute a run with a view of its progress. Shared by the commands that run something."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from allranks import engine_log
from allranks.api import jobs
from allranks.api.retry import Retry
from allranks.cli import streams
from allranks.cli.console import console, errors, plain, print_warnings, to_json
from allranks.cli.values import ALL_RANKS
from allranks.cli.views.live_logs import FollowedLog, ScriptOutput
from allranks.cli.views.progress import view_of
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status
from allranks.local import engine
from allranks.local.engine import DiskFullError
from allranks.local.options import Options
from allranks.text import duration
from allranks.workspace import Workspace


def execute_job(
    job: Callable[[], Any], workspace: Workspace, options: Options, json: bool, *, verbose: bool, stream: str = ""
) -> None:
    """Read a job and execute it, as `execute` does.

    job:    returns the job for `jobs.read`
    stream: as for `execute`
    """
    _set_level(verbose)
    with Installations() as report:
        plan = jobs.read(job(), options.settings, workspace, options, report=report, warn=print_warnings)
    execute(lambda observer: engine.run(plan, workspace, options, observer), json, verbose=verbose, stream=stream)


def execute_again(again: Retry, run: Callable[[Retry, Observer], RunRecord], json: bool, *, verbose: bool) -> None:
    """Execute a stored run with a method of `Retry`, as `execute` does."""

    def run_again(observer: Observer) -> RunRecord:
        with Installations() as report:
            return run(replace(again, warn=print_warnings, report=report), observer)

    execute(run_again, json, verbose=verbose)


def execute(
    run: Callable[[Observer], RunRecord],
    json: bool,
    *,
    verbose: bool = False,
    prints_record: bool = True,
    plain: bool = False,
    fails: bool = True,
    stream: str = "",
) -> RunRecord:
    """Call `run` with an observer that shows its progress, print the result, and return it.

    json:          whether standard output is for a program
    verbose:       whether to print the lines of the engine's log to standard error
    prints_record: whether to print the record for that program
    plain:         whether to print lines instead of a tree on a terminal
    fails:         whether to exit if the run fails
    stream:        the rank of each step whose output to print, or all; "": none

    Exit with 1 if the run fails or the disk is full, and with 130 if the run is canceled. If the reader of the output
    goes away, as in ``allranks run FILE | head -1``, the run continues without output.
    """
    _set_level(verbose)
    with streams.unbroken():
        # With --json, stdout is for a program; the view goes to stderr.
        screen = errors() if json else console()
        view = view_of(screen, plain=plain or verbose)
        try:
            with view, contextlib.ExitStack() as stack:
                observer: Observer = view
                if stream:
                    rank = None if stream == ALL_RANKS else int(stream)
                    observer = stack.enter_context(ScriptOutput(observer, screen, rank))
                if verbose:
                    observer = stack.enter_context(FollowedLog(observer, errors()))
                record = run(observer)
        except DiskFullError as error:
            errors().print(
                f"error: {error}\n  every process of the run has ended; free some space, then: allranks resume latest\n"
                "  more: allranks why disk-full"
            )
            sys.exit(1)
        if json and prints_record:
            print(to_json(record))
    if record.status is Status.FAILED and fails:
        sys.exit(1)
    if record.status is Status.CANCELED:
        sys.exit(130)
    return record


def _set_level(verbose: bool) -> None:
    """Let the engine and its processes, which inherit the variable, log everything."""
    if verbose:
        os.environ[engine_log.LEVEL_VARIABLE] = "debug"


class Installations(contextlib.AbstractContextManager["Installations"]):
    """Show the progress of making the environments of a run. Use it as a context manager, and as the `Report`."""

    def __init__(self) -> None:
        self._console = errors()
        self._status = self._console.status("")
        self._started: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def __call__(self, name: str, what: str) -> None:
        self._ended[name] = time.monotonic()
        if name not in self._started:
            self._started[name] = self._ended[name]
            self._console.print(f"environment {plain(name)}: it is being made, once for all runs", soft_wrap=True)
            self._status.start()
        self._status.update(f"environment {plain(name)}: {plain(what)[:60]}")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._status.stop()
        if kind is None:
            for name, started in self._started.items():
                text = f"environment {plain(name)}: made in {duration(self._ended[name] - started)}"
                self._console.print(text, soft_wrap=True)
