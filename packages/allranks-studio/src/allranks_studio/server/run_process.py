"""The process of a run that the studio has started: it reads the user's file, executes the run, outlives the studio."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from allranks.api import jobs
from allranks.api.engine_process import execute
from allranks.api.retry import Retry
from allranks.errors import InputError, Problem
from allranks.history.observer import Observer
from allranks.local import engine, stop_signals
from allranks.local.options import DEFAULTS, Options
from allranks.workspace import Workspace


def carry_out(task: dict[str, Any], observer: Observer) -> None:
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


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the file prints is not an answer
    with stop_signals.raised():
        task = json.loads(sys.stdin.readline())
        execute(lambda observer: carry_out(task, observer), answers)
