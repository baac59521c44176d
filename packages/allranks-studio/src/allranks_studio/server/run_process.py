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
from allranks.errors import InputError, Problem
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local import engine, stop_signals
from allranks.local.options import DEFAULTS, Options
from allranks.workspace import Workspace


class _Announcer(Observer):
    """Write the id of the run when it has begun, or the problems that prevent it."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers

    def started(self, run: RunRecord) -> None:
        self.answer(run=run.id)

    def answer(self, **values: Any) -> None:
        if not self._answers.closed:
            with self._answers:
                json.dump(values, self._answers)


def execute(task: dict[str, Any], observer: Observer) -> None:
    """Start, resume or rerun a run, and wait for its end. Raise InputError if that is impossible."""
    workspace, target, inputs = Workspace(Path(task["workspace"])), task["target"], task["inputs"]
    match task["action"]:
        case "start":
            options = Options(target=target, settings=inputs)
            engine.run(jobs.read(target, inputs, workspace, options), workspace, options, observer)
        case "resume":
            Retry(target, workspace, DEFAULTS).resume(observer)
        case "rerun":
            Retry(target, workspace, DEFAULTS, inputs=inputs).rerun(observer)
        case action:
            raise InputError(Problem(f"run {target}", f"there is no action {action[:40]}", "start, resume or rerun"))


def main() -> None:
    """Execute the task that standard input describes."""
    observer = _Announcer(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # what the file prints is not an answer
    try:
        with stop_signals.raised():
            execute(json.loads(sys.stdin.readline()), observer)
    except InputError as error:
        observer.answer(problems=list(map(asdict, error.problems)))
    except engine.DiskFullError as error:
        observer.answer(problems=[asdict(Problem("workspace", str(error), "", "free some space", code="disk-full"))])


if __name__ == "__main__":
    main()
