"""The engine's interface to the tracker process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from allranks.local.tracking.needed import may_track
from allranks.plan.graph import Step
from allranks.runs.records import Point
from allranks.runs.workspace import Workspace

BIG_LINE = 1 << 28
"""Maximum bytes of one answer, which contains all curves of an MLflow run."""

REQUEST_SECONDS = 120.0
"""Time limit for an answer. The first one includes the import of MLflow and the creation of its database, which took 25
s on two busy cores."""

CLOSE_SECONDS = 5.0
"""How long the process may take to exit when it has no work left."""


class TrackingError(Exception):
    """MLflow failed; the message says why. It leads to a note, and does not end the run."""


class Tracking:
    """Create and end MLflow runs, one request at a time. The first request starts the tracker process, or `warm_up`.

    enabled: whether steps get MLflow runs

    A process that does not answer in time, or gives an invalid answer, is killed. Every later request then fails
    immediately.
    """

    def __init__(self, workspace: Workspace, *, enabled: bool = True) -> None:
        self._workspace = workspace
        self._enabled = enabled
        self._lock = asyncio.Lock()
        self._start: asyncio.Task[asyncio.subprocess.Process] | None = None
        self._numbers = itertools.count()
        self._broken = ""

    def tracks(self, step: Step) -> bool:
        """Return whether a step gets an MLflow run."""
        return self._enabled and may_track(step)

    def warm_up(self) -> None:
        """Start the process without waiting for it."""
        if self._start is None:
            self._start = asyncio.create_task(self._spawn())

    async def create(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """Create an MLflow run, and return its id. Raise TrackingError on failure."""
        answer = await self._ask(request="create", experiment=experiment, name=name, tags=dict(tags))
        try:
            return str(answer["run_id"])
        except KeyError:
            raise TrackingError("the process that talks to MLflow gave no run id") from None

    async def end(self, run_id: str, status: str) -> dict[str, list[Point]]:
        """End an MLflow run as FINISHED, FAILED or KILLED, and return its curves. Raise TrackingError on failure."""
        answer = await self._ask(request="end", run_id=run_id, status=status)
        try:
            return {name: [Point(*point) for point in points] for name, points in answer["metrics"].items()}
        except (AttributeError, KeyError, TypeError):
            raise TrackingError("the process that talks to MLflow gave no curves") from None

    def abandon(self) -> None:
        """Kill the process. The current request and all later ones fail immediately."""
        self._broken = self._broken or "the run was stopped before MLflow answered"
        if self._start is not None and self._start.done() and self._start.exception() is None:
            _kill(self._start.result())

    async def close(self) -> None:
        """End the process, and wait until it has exited."""
        if self._start is None:
            return
        with contextlib.suppress(OSError):
            process = await asyncio.shield(self._start)
            try:
                assert process.stdin is not None
                process.stdin.close()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(process.wait(), CLOSE_SECONDS)
            finally:
                _kill(process)
            await process.wait()

    async def _ask(self, **request: Any) -> dict[str, Any]:
        self.warm_up()
        assert self._start is not None
        async with self._lock:
            if self._broken:
                raise TrackingError(self._broken)
            try:
                # The caller may be cancelled; other callers still need the process.
                process = await asyncio.shield(self._start)
                answer = await asyncio.wait_for(self._exchange(process, request), REQUEST_SECONDS)
            except asyncio.TimeoutError:
                self._broken = (
                    self._broken or f"the process that talks to MLflow did not answer within {REQUEST_SECONDS:g} s"
                )
            except (OSError, ValueError) as error:
                self._broken = self._broken or f"the process that talks to MLflow broke: {error}"
            if self._broken:
                with contextlib.suppress(OSError):
                    _kill(await asyncio.shield(self._start))
                raise TrackingError(self._broken)
        if "error" in answer:
            raise TrackingError(str(answer["error"]))
        return answer

    async def _exchange(self, process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return its answer. Raise ValueError if the answer is invalid."""
        assert process.stdin is not None
        assert process.stdout is not None
        number = next(self._numbers)
        with contextlib.suppress(ConnectionError):
            process.stdin.write((json.dumps({"number": number, **request}) + "\n").encode())
            await process.stdin.drain()
        while True:
            line = await process.stdout.readline()
            if not line:
                raise ValueError("it ended")
            if not line.endswith(b"\n"):
                raise ValueError("it ended in the middle of an answer")
            answer = json.loads(line)
            if not isinstance(answer, dict):
                raise ValueError("it answered with something else than an object")
            # An answer with another number belongs to a request that was cancelled.
            if answer.get("number") == number:
                return answer

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command(self._workspace),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=BIG_LINE,
            start_new_session=True,
        )


def command(workspace: Workspace) -> tuple[str, ...]:
    """Return the command that starts the tracker process."""
    module = "allranks.local.tracking.tracker"
    uri, files = workspace.tracking_uri, str(workspace.tracked_files)
    return (sys.executable, "-m", module, str(os.getpid()), uri, files)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
