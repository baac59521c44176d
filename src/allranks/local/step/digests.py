"""Digests of the data that the steps of a run read and write: each path is digested once, however many read it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from allranks.plan import digest
from allranks.plan.file_tree import Stop
from allranks.plan.ports import PRIMITIVES
from allranks.plan.values import Given
from allranks.runs.records import OutputRecord


class Digests:
    """The digests that are known in one run. Use it on one thread."""

    def __init__(self, stop: Stop) -> None:
        """stop: ends digesting with StoppedError"""
        self._stop = stop
        self._found: dict[str, asyncio.Task[str]] = {}
        self._written: dict[str, str] = {}

    def add(self, outputs: Iterable[OutputRecord]) -> None:
        """Add what a step has written, which was digested then."""
        for output in outputs:
            if output.digest:
                self._written[output.path] = output.digest
                self._found.pop(output.path, None)

    async def of_inputs(self, ports: Iterable[Given]) -> dict[str, str | None]:
        """Return for each port what its reuse depends on: the text of a primitive, the digest of data.

        Raises OSError where data cannot be read, StoppedError.
        """
        return {
            port.name: port.value
            if port.value is None or port.type in PRIMITIVES
            else self._written.get(port.value) or await self._of_path(port.value)
            for port in ports
        }

    async def _of_path(self, path: str) -> str:
        task = self._found.get(path)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = asyncio.create_task(asyncio.to_thread(digest.of_path, Path(path), self._stop))
            self._found[path] = task
        # Several steps wait for it: one that is canceled must not take it from the others.
        return await asyncio.shield(task)
