"""Digests of the data that the steps of a run read and write. Each path is digested once, however many steps read
it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from allranks.local.attempt.stop import Stop
from allranks.plan import digest
from allranks.plan.digest import KnownDigests
from allranks.plan.ports import PRIMITIVES
from allranks.plan.values import Given
from allranks.runs.records import OutputRecord


@dataclass
class _Digesting:
    """The digest of one path. end: stops it when no step waits for it any more"""

    task: asyncio.Task[str]
    end: threading.Event
    waiting: int = 0


class Digests:
    """The digests that are known in one run. Use it on one thread.

    files: digests of files that need not be read again
    """

    def __init__(self, files: KnownDigests | None = None) -> None:
        self._files = files
        self._by_path: dict[str, _Digesting] = {}
        self._written: dict[str, str] = {}

    def add(self, outputs: Iterable[OutputRecord]) -> None:
        """Add the outputs of a step, which have a digest already."""
        for output in outputs:
            if output.digest:
                self._written[output.path] = output.digest
                self._by_path.pop(output.path, None)

    async def of_inputs(self, ports: Iterable[Given], stop: Stop) -> dict[str, str | None]:
        """Return for each port what a reuse depends on: the text of a primitive, or the digest of data.

        Raise OSError if data cannot be read, StoppedError once `stop` is set.
        """
        return {
            port.name: port.value
            if port.value is None or port.type in PRIMITIVES
            else self._written.get(port.value) or await self._of_path(port.value, stop)
            for port in ports
        }

    def known(self, ports: Iterable[Given]) -> dict[str, str | None]:
        """Return for each port the text of a primitive, the digest of what a step of this run wrote, or a path."""
        return {port.name: self._written.get(port.value or "", port.value) for port in ports}

    async def _of_path(self, path: str, stop: Stop) -> str:
        digesting = self._by_path.get(path)
        if digesting is None or digesting.end.is_set() or (digesting.task.done() and _failed(digesting.task)):
            end = threading.Event()
            task = asyncio.create_task(asyncio.to_thread(digest.of_path, Path(path), end, self._files))
            task.add_done_callback(_failed)  # retrieve its exception, because no step may wait for it any more
            digesting = self._by_path[path] = _Digesting(task, end)
        digesting.waiting += 1
        try:
            # Several steps may wait for the task, so a canceled step must not cancel it.
            return await stop.or_result(digesting.task)
        finally:
            digesting.waiting -= 1
            if not digesting.waiting and not digesting.task.done():
                digesting.end.set()


def _failed(task: asyncio.Task[str]) -> bool:
    return task.cancelled() or task.exception() is not None
