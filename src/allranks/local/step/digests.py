"""Digests of the data that the steps of a run read and write: each path is digested once, however many read it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from allranks.local.step.stop import Stop
from allranks.plan import digest
from allranks.plan.ports import PRIMITIVES
from allranks.plan.values import Given
from allranks.runs.records import OutputRecord


@dataclass
class _Digesting:
    """The digest of one path. end: stops it, once no step waits for it any more."""

    task: asyncio.Task[str]
    end: threading.Event
    waiting: int = 0


class Digests:
    """The digests that are known in one run. Use it on one thread."""

    def __init__(self) -> None:
        self._found: dict[str, _Digesting] = {}
        self._written: dict[str, str] = {}

    def add(self, outputs: Iterable[OutputRecord]) -> None:
        """Add what a step has written, which was digested then."""
        for output in outputs:
            if output.digest:
                self._written[output.path] = output.digest
                self._found.pop(output.path, None)

    async def of_inputs(self, ports: Iterable[Given], stop: Stop) -> dict[str, str | None]:
        """Return for each port what its reuse depends on: the text of a primitive, the digest of data.

        Raise OSError where data cannot be read, StoppedError once `stop` is set.
        """
        return {
            port.name: port.value
            if port.value is None or port.type in PRIMITIVES
            else self._written.get(port.value) or await self._of_path(port.value, stop)
            for port in ports
        }

    async def _of_path(self, path: str, stop: Stop) -> str:
        found = self._found.get(path)
        if found is None or found.end.is_set() or (found.task.done() and _failed(found.task)):
            end = threading.Event()
            task = asyncio.create_task(asyncio.to_thread(digest.of_path, Path(path), end))
            task.add_done_callback(_failed)  # it may be nobody's any more
            found = self._found[path] = _Digesting(task, end)
        found.waiting += 1
        try:
            # Several steps wait for it: one that is canceled must not take it from the others.
            return await stop.or_result(found.task)
        finally:
            found.waiting -= 1
            if not found.waiting and not found.task.done():
                found.end.set()


def _failed(task: asyncio.Task[str]) -> bool:
    return task.cancelled() or task.exception() is not None
