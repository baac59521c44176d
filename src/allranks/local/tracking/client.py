"""The engine's end of the tracker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from allranks.local.tracking.needed import may_track
from allranks.plan.graph import Step
from allranks.runs.records import Point
from allranks.runs.workspace import Workspace

BIG_LINE = 1 << 28
"""Bytes that one answer may have: a long run's curves come in one."""


class TrackingError(Exception):
    """MLflow refused or broke; the text says how. Metrics are worth a note, not a run."""


class Tracking:
    """Makes and ends MLflow runs, one request at a time. The process behind it is started by the first use, or by
    `warm_up`.

    wanted: whether any step is to have an MLflow run
    """

    def __init__(self, workspace: Workspace, *, wanted: bool = True) -> None:
        self._workspace = workspace
        self._wanted = wanted
        self._lock = asyncio.Lock()
        self._start: asyncio.Task[asyncio.subprocess.Process] | None = None

    def tracks(self, step: Step) -> bool:
        """Whether a step gets an MLflow run."""
        return self._wanted and may_track(step)

    def warm_up(self) -> None:
        """Starts the process without waiting for it."""
        if self._start is None:
            self._start = asyncio.create_task(self._spawn())

    async def create(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """Makes an MLflow run and returns its id. Raises TrackingError."""
        answer = await self._ask(request="create", experiment=experiment, name=name, tags=dict(tags))
        return str(answer["run_id"])

    async def end(self, run_id: str, status: str) -> dict[str, list[Point]]:
        """Ends an MLflow run as FINISHED, FAILED or KILLED and returns its curves. Raises TrackingError."""
        answer = await self._ask(request="end", run_id=run_id, status=status)
        return {name: [Point(*point) for point in points] for name, points in answer["metrics"].items()}

    async def close(self) -> None:
        """Ends the process, and waits for that."""
        if self._start is not None:
            process = await self._start
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()

    async def _ask(self, **request: Any) -> dict[str, Any]:
        self.warm_up()
        assert self._start is not None
        process = await self._start
        assert process.stdin is not None
        assert process.stdout is not None
        async with self._lock:
            with contextlib.suppress(ConnectionError):
                process.stdin.write((json.dumps(request) + "\n").encode())
                await process.stdin.drain()
            line = await process.stdout.readline()
        if not line:
            raise TrackingError("the process that talks to MLflow ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TrackingError(answer["error"])
        return answer

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "allranks.local.tracking.tracker",
            self._workspace.tracking_uri, str(self._workspace.tracked_files),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=BIG_LINE,
            start_new_session=True,
        )  # fmt: skip
