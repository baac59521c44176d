"""Execute a run in a separate process, so that it does not depend on the caller's event loop, signals or threads.

The engine reads the run from standard input, and reports on standard output as JSON, one object per line. It stops the
run when standard input is closed: a run ends with the process that started it, unless it is detached.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from allranks.errors import InputError, Problem
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local import engine, stop_signals
from allranks.local.data.inputs import fetch_data
from allranks.local.options import Options
from allranks.local.selection import Selection
from allranks.plan import codec
from allranks.plan.graph import Plan
from allranks.workspace import Workspace

_DETACHED = "--detached"


class EngineError(RuntimeError):
    """The engine ended without a result; the message contains the last lines that it printed."""


@dataclass
class EngineProcess:
    """The process that executes a run. errors: its standard error; stopping: whether it was asked to stop"""

    process: subprocess.Popen[str]
    errors: IO[bytes]
    stopping: bool = False

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the process, for at most `seconds`. Return whether it has ended."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Ask the engine to stop the run. The second call kills the ranks at once.

        Until the engine handles signals, it may ignore SIGINT. Two pending signals of one kind are one.
        """
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self.stopping else signal.SIGTERM)
            self.stopping = True

    def error(self) -> EngineError:
        """Return an error with the last lines that the engine printed."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()[-20:]
        return EngineError("\n".join(["the engine of the run ended unexpectedly", *lines]))


def start(plan: Plan, workspace: Workspace, options: Options, *, detached: bool = False) -> tuple[str, EngineProcess]:
    """Start a run in a new process. Return its id, after the run has been created, and the process.

    detached: whether the run continues when this process ends

    Raise InputError if the run cannot start here, EngineError if the engine fails.
    """
    # A download may take long, so this process does it, whose output the caller sees.
    plan, _ = fetch_data(plan, workspace, offline=options.offline, sample=options.sample)
    task = {"workspace": str(workspace.root), "plan": codec.dumps(plan), "options": asdict(options)}
    return launch(["-m", __name__, *([_DETACHED] if detached else [])], task)


def launch(arguments: Sequence[str], task: Mapping[str, Any], folder: Path | None = None) -> tuple[str, EngineProcess]:
    """Start Python with a module that calls `execute`. Return as `start` does. folder: default: the current one"""
    errors = tempfile.TemporaryFile(prefix="allranks-")  # noqa: SIM115  # it is read when the engine has ended
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C at the terminal is for the caller
    )
    engine = EngineProcess(process, errors)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(task, default=str) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline() or "{}")
    except BrokenPipeError:
        answer = {}
    except BaseException:
        engine.stop()
        engine.wait()
        raise
    if "problems" in answer:
        engine.wait()
        raise InputError.of(Problem(**problem) for problem in answer["problems"])
    if "run" not in answer:
        engine.wait()
        raise engine.error()
    return answer["run"], engine


@dataclass
class _Reporter(Observer):
    """Report the id of the run when it has been created."""

    out: IO[str]

    def started(self, run: RunRecord) -> None:
        self.report(run=run.id)

    def report(self, **message: Any) -> None:
        print(json.dumps(message), file=self.out, flush=True)


def main() -> None:
    """Execute the run that standard input describes. Exit with 0 when the run has ended, in whatever state."""
    with stop_signals.raised():
        task = json.loads(sys.stdin.readline() or "null")
        if task is None:
            return
        if _DETACHED not in sys.argv:
            threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
        options = task["options"]
        if options["trigger_time"]:
            options["trigger_time"] = datetime.fromisoformat(options["trigger_time"])
        options["selection"] = Selection(**{name: tuple(paths) for name, paths in options["selection"].items()})
        plan, workspace = codec.loads(task["plan"]), Workspace(Path(task["workspace"]))
        execute(lambda observer: engine.run(plan, workspace, Options(**options), observer), sys.stdout)


def execute(run: Callable[[Observer], object], out: IO[str]) -> None:
    """Call a function that executes a run, and report its id, or the problems. out: standard output"""
    reporter = _Reporter(out)
    try:
        run(reporter)
    except InputError as error:
        reporter.report(problems=[asdict(problem) for problem in error.problems])
    except engine.DiskFullError as error:
        reporter.report(problems=[asdict(Problem("workspace", str(error), "", "free some space", code="disk-full"))])


def _stop_at_end_of_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
