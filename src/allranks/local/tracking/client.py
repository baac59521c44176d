"""The engine's interface to the tracker process."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from allranks.history.records import ModelRecord, Point
from allranks.plan.graph import Step
from allranks.workspace import Workspace

_log = logging.getLogger(__name__)

REQUEST_SECONDS = 120.0
"""Time limit for an answer. The first one includes the import of MLflow and the creation of its database, which took 25
s on two busy cores."""

CLOSE_SECONDS = 5.0
"""Seconds for the process to exit when it has no work."""


def may_track(step: Step) -> bool:
    """Return whether the step may log to MLflow: MLflow is installed, and the step has code or starts Python.

    On Azure ML, every job has an MLflow run. Here, creating one takes about 10 ms, after seconds for the first one, so
    a step that only runs `cp`, for example, gets none."""
    return (step.code is not None or "python" in step.command) and find_spec("mlflow") is not None


class TrackingError(Exception):
    """MLflow failed. The message is the reason. It leads to a note, and does not end the run."""


@dataclass(frozen=True)
class ParentRun:
    """The MLflow run of a pipeline's run, whose children are the MLflow runs of its steps. As on Azure ML, the steps of
    a nested pipeline are children of the same run.

    tags:   the tags, with allranks.run, the id of the pipeline's run
    params: the pipeline's inputs
    run_id: None until the first child has been created
    """

    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)
    run_id: str | None = None


@dataclass(eq=False)
class Tracking:
    """Create and end MLflow runs, one request at a time. The first request, or `start`, starts the tracker process.

    enabled: whether steps get MLflow runs
    parent:  their parent, which is created together with the first of them; None if they have none
    log:     the engine's log, to which the process logs too; None for no log

    A process that does not answer in time, or gives an invalid answer, is killed. Every later request then fails
    immediately.
    """

    workspace: Workspace
    _: KW_ONLY
    enabled: bool = True
    parent: ParentRun | None = None
    log: Path | None = None

    def __post_init__(self) -> None:
        self._lock = asyncio.Lock()
        self._exchanging = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._broken = ""

    def tracks(self, step: Step) -> bool:
        """Return whether a step gets an MLflow run."""
        return self.enabled and may_track(step)

    @property
    def parent_id(self) -> str | None:
        """The id of the parent, or None before it is created."""
        return self.parent.run_id if self.parent is not None else None

    def start(self) -> None:
        """Start the process, which imports MLflow meanwhile."""
        with contextlib.suppress(OSError):  # the first request reports it
            self._start_process()

    async def create(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """Create an MLflow run, a child of the parent, and return its id. Raise TrackingError on failure."""
        parent = asdict(self.parent) if self.parent is not None else None
        asked = {"experiment": experiment, "name": name, "tags": dict(tags), "parent": parent}
        answer = await self._ask(request="create", artifacts=str(self.workspace.tracked_files), **asked)
        if self.parent is not None:
            self.parent = replace(self.parent, run_id=answer["parent_id"])
        return str(answer["run_id"])

    async def curve(self, run_id: str, metric: str) -> list[Point]:
        """Return the values of a metric that an MLflow run has logged so far. Raise TrackingError on failure."""
        answer = await self._ask(request="curve", run_id=run_id, metric=metric)
        return [Point(*point) for point in answer["points"]]

    async def end(self, run_id: str, status: str, folder: str) -> tuple[dict[str, list[Point]], str]:
        """End an MLflow run as FINISHED, FAILED or KILLED. Return its curves, and the line in its tag allranks.result,
        "" if it has none. Raise TrackingError on failure.

        folder: the folder of the step, which gets links to the run's artifacts
        """
        answer = await self._ask(request="end", run_id=run_id, status=status, folder=folder)
        curves = {name: [Point(*point) for point in points] for name, points in answer["metrics"].items()}
        return curves, answer["result"]

    async def finish(self, status: str, metrics: Mapping[str, float]) -> None:
        """End the parent as FINISHED, FAILED or KILLED, with the metrics of the whole run. Raise TrackingError on
        failure."""
        await self._ask(request="finish", run_id=self.parent_id, status=status, metrics=dict(metrics))

    async def registered(self, run_ids: Sequence[str]) -> dict[str, list[ModelRecord]]:
        """Return the versions of models that MLflow runs registered, by run. Raise TrackingError on failure."""
        answer = await self._ask(request="registered", run_ids=list(run_ids))
        return {
            run_id: [ModelRecord(name, version) for name, version in models]
            for run_id, models in answer["models"].items()
        }

    def abandon(self) -> None:
        """Kill the process. The current request and all later ones fail immediately."""
        self._broken = self._broken or "the run was stopped before MLflow answered"
        if self._process is not None:
            self._process.kill()

    async def close(self) -> None:
        """End the process, and wait until it has exited."""
        if self._process is not None:
            await asyncio.to_thread(_end, self._process)

    async def _ask(self, **request: Any) -> dict[str, Any]:
        async with self._lock:
            if self._broken:
                raise TrackingError(self._broken)
            try:
                # The caller may be cancelled. The thread then still reads the answer.
                exchange = asyncio.to_thread(self._exchange, self._start_process(), request)
                answer = await asyncio.wait_for(exchange, REQUEST_SECONDS)
            except TimeoutError:
                self._broken = self._broken or f"the MLflow process did not answer within {REQUEST_SECONDS:g} s"
            except (OSError, ValueError) as error:
                self._broken = self._broken or f"the MLflow process failed: {error}"
            if self._broken:
                _log.error("tracker lost", extra={"reason": self._broken})
                self.abandon()
                raise TrackingError(self._broken)
        if "error" in answer:
            raise TrackingError(str(answer["error"]))
        return answer

    def _exchange(self, process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, and return its answer. Called in a thread. Raise ValueError if the answer is invalid."""
        assert process.stdin is not None
        assert process.stdout is not None
        with self._exchanging:  # the sender of the request before may have been cancelled before its answer arrived
            with contextlib.suppress(OSError):  # it has ended, and so has its output
                process.stdin.write((json.dumps(request) + "\n").encode())
                process.stdin.flush()
            if not (line := process.stdout.readline()):
                raise ValueError(_describe_exit(process))
        if not line.endswith(b"\n"):
            raise ValueError("it ended in the middle of an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start_process(self) -> subprocess.Popen[bytes]:
        """Return the process. Start it if it does not run. Raise OSError if it cannot start."""
        if self._process is None:
            self._process = subprocess.Popen(
                command(self.workspace, self.log),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C at the terminal is for the engine
            )
            _log.info("tracker started", extra={"tracker_pid": self._process.pid})
        return self._process


def command(workspace: Workspace, log: Path | None) -> tuple[str, ...]:
    """Return the command that starts the tracker process. It creates nothing before its first request."""
    module = "allranks.local.tracking.tracker"
    return (sys.executable, "-m", module, str(os.getpid()), workspace.tracking_uri, str(log or ""))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a tracker process, and wait until it has exited."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):  # it has ended already
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(CLOSE_SECONDS)
    process.kill()
    process.wait()
    process.stdout.close()


def _describe_exit(process: subprocess.Popen[bytes]) -> str:
    """Return how the tracker process ended, and log it."""
    try:
        code = process.wait(CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
        return "it closed its output"
    _log.warning("tracker ended", extra={"ended": process.pid, "code": code})
    return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
