"""The process of a run that the studio has started: it reads the user's file, executes the run, outlives the studio.

It reads the task from standard input as JSON, and writes one line: the id of the run when it has begun, or the problems
that prevent it.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from allranks.api import jobs
from allranks.api.retry import Retry
from allranks.catalog.find import run_target
from allranks.errors import InputError, Problem
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local import engine, stop_signals
from allranks.local.options import DEFAULTS, Options
from allranks.workspace import Workspace


class _Announcer(Observer):
    """Write the id of the run when it has begun."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers

    def started(self, run: RunRecord) -> None:
        _answer(self._answers, {"run": run.id})


def execute(task: dict[str, Any], observer: Observer) -> None:
    """Start, resume or rerun a run, and wait for its end. Raise InputError if that is impossible."""
    workspace, inputs = Workspace(Path(task["workspace"])), task["inputs"]
    match task["action"]:
        case "start":
            options = Options(target=task["file"], settings=inputs)
            engine.run(jobs.read(run_target(task["file"]), inputs, workspace, options), workspace, options, observer)
        case "resume":
            Retry(task["run"], workspace, DEFAULTS).resume(observer)
        case "rerun":
            Retry(task["run"], workspace, DEFAULTS, inputs=inputs).rerun(observer)


def _answer(answers: IO[str], value: dict[str, Any]) -> None:
    if not answers.closed:
        with answers:
            json.dump(value, answers)


def main() -> None:
    """Execute the task that standard input describes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the file prints is not an answer
    try:
        with stop_signals.raised():
            execute(json.loads(sys.stdin.readline()), _Announcer(answers))
    except InputError as error:
        _answer(answers, {"problems": [asdict(problem) for problem in error.problems]})
    except engine.DiskFullError as error:
        problem = Problem("workspace", str(error), "", "free some space", code="disk-full")
        _answer(answers, {"problems": [asdict(problem)]})


if __name__ == "__main__":
    main()
