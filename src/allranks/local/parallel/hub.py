"""The process that distributes mini-batches to the workers of all instances and collects their results."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from . import tables
from .worker import load

REPORT_INTERVAL = 0.5
"""Seconds between reports of progress."""


class FatalError(Exception):
    """The step fails. detail: the traceback of an exception in a worker"""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


@dataclass(eq=False)
class _Worker:
    """A connection to a worker. busy: its current mini-batch, and the time at which it started"""

    connection: socket.socket
    name: str = "a worker"
    ready: bool = False
    busy: tuple[int, float] | None = None
    received: bytearray = field(default_factory=bytearray)


class Hub:
    """Distributes the mini-batches of a step.

    alive: a pipe whose other end closes when the process that started this one has ended
    """

    def __init__(self, settings: dict[str, Any], alive: int) -> None:
        self._settings = settings
        self._alive = alive
        self._report: Any = load("_allranks_parallel.report", settings["report"])
        self._selector = selectors.DefaultSelector()
        self._idle: list[_Worker] = []
        self._failed_batches = self._failed_items = 0
        self._reported = 0.0
        self._short = False

    def run(self) -> int:
        """Distribute all mini-batches, write the results, and return the exit code of the step."""
        try:
            with _listening(self._settings["socket"]) as listener:
                self._divide()
                self._serve(listener)
            self._write()
        except (FatalError, tables.DataError) as error:
            detail = getattr(error, "detail", "")
            print(f"{detail}{error}", file=sys.stderr)
            self._report.append(self._report.Failure(str(error), "", detail))
            return 1
        except Exception as error:
            traceback.print_exc()
            self._report.append(self._report.Failure(type(error).__name__, str(error), traceback.format_exc()))
            return 1
        finally:
            # Workers that have not connected yet need not wait.
            open(f"{self._settings['socket']}.over", "w").close()
        return 0

    def _divide(self) -> None:
        self._batches = list(tables.Data(self._settings).split())
        self._texts = [""] * len(self._batches)
        self._tries = [0] * len(self._batches)
        self._waiting = deque(range(len(self._batches)))
        self._open = len(self._batches)
        print(f"{len(self._batches)} mini-batches")
        self._report_progress()

    def _serve(self, listener: socket.socket) -> None:
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._alive, selectors.EVENT_READ)
        live = 0
        while self._open or live:
            for key, _ in self._selector.select():
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    self._selector.register(connection, selectors.EVENT_READ, _Worker(connection))
                    live += 1
                elif key.data is None:
                    raise FatalError("the process that starts the workers has ended")
                elif not self._read(key.data):
                    live -= 1
                    self._lost(key.data)
            if time.monotonic() - self._reported > REPORT_INTERVAL:
                self._report_progress()
        self._report_progress()

    def _read(self, worker: _Worker) -> bool:
        """Handle a message of a worker. Return False if the worker has ended."""
        try:
            data = worker.connection.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        worker.received += data
        *lines, worker.received = worker.received.split(b"\n")
        for line in lines:
            kind, *values = json.loads(line)
            getattr(self, f"_on_{kind}")(worker, *values)
        return bool(data)

    def _on_start(self, worker: _Worker, name: str) -> None:
        worker.name = name

    def _on_ready(self, worker: _Worker) -> None:
        worker.ready = True
        self._send_next(worker)

    def _on_fatal(self, worker: _Worker, message: str, detail: str) -> None:
        raise FatalError(f"{message} ({worker.name})", detail)

    def _on_done(self, worker: _Worker, count: int, items: int, text: str, short: str) -> None:
        assert worker.busy is not None
        index = worker.busy[0]
        missing = max(0, items - count)
        self._texts[index] = text
        self._failed_items += missing
        self._open -= 1
        if short and not self._short:
            self._short = True
            print(f"{short}; the missing ones count as failed items")
        self._check_items(short)
        self._send_next(worker)

    def _on_failed(self, worker: _Worker, message: str) -> None:
        self._fail(worker, message)
        self._send_next(worker)

    def _lost(self, worker: _Worker) -> None:
        """Handle the end of a worker, which its time-out or a signal may have caused."""
        self._selector.unregister(worker.connection)
        worker.connection.close()
        if worker in self._idle:
            self._idle.remove(worker)
        if not worker.ready:
            raise FatalError(f"{worker.name} ended while it imported the script or in init(), without an exception")
        if worker.busy is not None:
            seconds = time.monotonic() - worker.busy[1]
            timeout = self._settings["timeout"]
            slow = f"it took longer than the time-out of {timeout} s"
            self._fail(worker, slow if seconds >= timeout else "the worker's process was killed")

    def _fail(self, worker: _Worker, message: str) -> None:
        """Handle a failed mini-batch: try it again later, or count it."""
        assert worker.busy is not None
        (index, _), worker.busy = worker.busy, None
        self._tries[index] += 1
        tries = self._settings["max_retries"] + 1
        what = f"mini-batch {index} ({_items(self._batches[index])})"
        print(f"{what} failed on {worker.name}, try {self._tries[index]} of {tries}: {message}", file=sys.stderr)
        if self._tries[index] < tries:
            self._waiting.append(index)
            if self._idle:
                self._send_next(self._idle.pop())
            return
        self._open -= 1
        self._failed_batches += 1
        self._failed_items += _count(self._batches[index])
        limit = self._settings["mini_batch_error_threshold"]
        last = f"the last one, {what}: {message}"
        if 0 <= limit < self._failed_batches:
            raise FatalError(f"{self._failed_batches} mini-batches failed, at most {limit} may; {last}")
        self._check_items(last)

    def _check_items(self, last: str) -> None:
        limit = self._settings["error_threshold"]
        if 0 <= limit < self._failed_items:
            raise FatalError(f"{self._failed_items} items failed, at most {limit} may; {last}")

    def _send_next(self, worker: _Worker) -> None:
        """Send a worker the next mini-batch. If there is none, it waits; when all are done, every worker ends."""
        worker.busy = None
        if self._waiting:
            index = self._waiting.popleft()
            items, group = self._batches[index]
            worker.busy = index, time.monotonic()
            _send(worker, [index, items, group])
            return
        self._idle.append(worker)
        if not self._open:
            for idle in self._idle:
                _send(idle, None)
            self._idle = []

    def _report_progress(self) -> None:
        self._reported = time.monotonic()
        total = len(self._batches)
        self._report.append(self._report.Progress(total - self._open, total))

    def _write(self) -> None:
        """Write the results in the order of the mini-batches, and report the failures."""
        total = len(self._batches)
        print(f"{total - self._failed_batches} of {total} mini-batches succeeded; {self._failed_items} items failed")
        if self._failed_items:
            text = f"{self._failed_batches} of {total} mini-batches and {self._failed_items} items failed"
            self._report.append(self._report.Note(f"{text}, which the error thresholds allow"))
        path = self._settings["append"]
        if not path:
            return
        if os.path.isdir(path):
            path = os.path.join(path, "parallel_run_step.txt")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(self._texts)


def _listening(path: str) -> socket.socket:
    folder, name = os.path.split(path)
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket may have 107 characters
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(1024)
    os.chdir(here)
    return listener


def _send(worker: _Worker, message: object) -> None:
    with contextlib.suppress(OSError):  # it has ended, which the next read detects
        worker.connection.sendall(json.dumps(message).encode() + b"\n")


def _count(batch: tables.MiniBatch) -> int:
    (_, part), _ = batch
    return part.get("end", 1) - part.get("first", 0) if isinstance(part, dict) else len(part)


def _items(batch: tables.MiniBatch) -> str:
    (_, part), group = batch
    if group is not None:
        return ", ".join(f"{name}={value}" for name, value in group.items())
    if isinstance(part, dict):
        return f"rows {part['first']} to {part['end'] - 1}"
    return f"{part[0] or 'the file'}{f' and {len(part) - 1} more' if len(part) > 1 else ''}"
