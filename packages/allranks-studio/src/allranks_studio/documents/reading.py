"""Read the text of a pipeline's file as a graph, in a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from allranks_studio.documents.canvas import Graph

SECONDS = 20.0
"""Limit for a reading."""
_ALLOWANCE = 40.0
"""Seconds in which the process starts, or prepares for the next reading, beside those of a reading."""


@dataclass(frozen=True)
class Reading:
    """What was read of a text.

    graph:    None if the text is not a pipeline that can be read; the findings say why
    findings: of `allranks check`, as `Finding` of api.ts
    compute:  the default of the pipeline
    taken:    names that a new node cannot have, besides those of the graph
    """

    graph: "Graph | None"
    findings: list[dict[str, Any]] = field(default_factory=list)
    name: str = ""
    display_name: str = ""
    description: str = ""
    compute: str = ""
    taken: Collection[str] = ()


class Reader:
    """A warm process, which is started when it is needed. Threads take turns."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, which takes seconds, before it is needed."""
        with self._lock:
            self._running()

    def read(self, path: Path, text: bytes, folder: Path | None = None) -> Reading:
        """Read a text as if it were the content of the file at this absolute path.

        folder: in which the file's code runs, and paths of messages begin; by default that of the file
        """
        from allranks_studio.documents.codec import (
            graph_from,  # takes 0.1 s to import, which a new studio does not need
        )

        answer = self._request(path, text, folder or path.parent, "")
        graph = answer["graph"]
        values = {name: answer.get(name, "") for name in ("name", "display_name", "description", "compute")}
        return Reading(graph_from(graph) if graph is not None else None, answer["findings"], **values)

    def export(self, path: Path, text: bytes, folder: Path, form: str) -> str:
        """Return a pipeline as text: as python, yaml, request, plan (what would run) or submit (a command).

        Raise InputError.
        """
        answer = self._request(path, text, folder, form)
        if "text" not in answer:
            keys = ("where", "found", "expected", "fix")
            raise InputError.of(Problem(*(each[key] for key in keys)) for each in answer["findings"])
        return str(answer["text"])

    def _request(self, path: Path, text: bytes, folder: Path, form: str) -> dict[str, Any]:
        request = {"path": str(path), "text": text.decode("latin-1"), "folder": str(folder), "form": form}
        line = json.dumps({**request, "seconds": self._seconds}).encode() + b"\n"
        with self._lock:
            try:
                answer = self._ask(line)
            except OSError:  # the process ended between two requests
                self._stop()
                if self._closed:
                    raise
                answer = self._ask(line)
        is_read = "findings" in answer
        return answer if is_read else {"graph": None, "findings": [_unread(path.name, answer, self._seconds)]}

    def close(self) -> None:
        """End the process, and with it a reading of another thread, which raises OSError."""
        self._closed = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            _kill_children(self._process.pid)
        with self._lock:
            self._stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "allranks_studio.documents.reader_process"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._process

    def _ask(self, line: bytes) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        if not wait([process.stdout.fileno()], self._seconds + _ALLOWANCE):
            # The process bounds a reading, but not one that stops in the middle of its answer.
            _kill_children(process.pid)
            self._stop()
            return {"ended": False}
        answer = process.stdout.readline()
        if self._closed or not answer:
            raise BrokenPipeError("the reader of pipelines has ended")
        result: dict[str, Any] = json.loads(answer)
        return result

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError), process:  # it ends with its input, and removes its folder
            try:
                if process.stdin is not None:
                    process.stdin.close()
                process.wait(5)
            except (OSError, subprocess.TimeoutExpired):
                process.kill()


def _kill_children(pid: int) -> None:
    """Kill the readings of a process, each with all that it started."""
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.killpg(int(child), signal.SIGKILL)


def _unread(name: str, answer: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the finding for a file whose code ended the process, or did not end."""
    found, fix = f"reading it took more than {seconds:.0f} s", "move what takes long out of the pipeline's file"
    if answer.get("ended"):
        found = f"it ended Python while it was read (exit code {answer['status']})"
        fix = "remove what ends the process, or uses too much memory"
    values = {"where": name, "found": found, "expected": "a file that only defines pipelines", "fix": fix}
    return {"level": "error", **values, "rule": "", "node": "", "port": "", "line": 0, "edits": []}
