"""Print the log of a run's engine, once or as it grows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from allranks import engine_log
from allranks.cli.console import plain
from allranks.history.observer import Observers
from allranks.history.records import RunRecord

LOOK = 0.2
"""Seconds between two looks at a growing log."""
_COLUMNS = ("time", "monotonic", "process", "pid", "level", "logger", "event", "node", "exception")
"""Keys with a column of their own. The others are listed at the end of a line."""
_STYLES = {"debug": "bright_black", "warning": "yellow", "error": "red", "critical": "red"}


def entries(file: Path, wait: Callable[[], bool] = lambda: False) -> Iterator[dict[str, Any]]:
    """Yield the entries of a log. Lines that are not entries, such as a last one that was cut off, are left out.

    wait: called at the end of the file; returns whether to look for more
    """
    with file.open("rb") as log:
        line, more = b"", True
        while more:
            more = wait()  # before the file is read, so that nothing is missed
            while piece := log.readline():
                line += piece
                if not line.endswith(b"\n"):
                    break
                try:
                    entry = json.loads(line)
                except ValueError:
                    entry = None
                line = b""
                if isinstance(entry, dict) and {"monotonic", "event"} <= entry.keys():
                    yield entry


def print_entries(console: Console, log: Iterator[dict[str, Any]]) -> None:
    """Print entries as lines: the seconds since the first, the process, the node, the event, and its data."""
    start: float | None = None
    for entry in log:
        start = entry["monotonic"] if start is None else start
        data = [f"{name} {value}" for name, value in entry.items() if name not in _COLUMNS and value is not None]
        parts = [str(entry.get("node") or ""), str(entry["event"]), ", ".join(data)]
        line = f"{entry['monotonic'] - start:9.3f}  {entry.get('process', ''):<12}  {'  '.join(filter(None, parts))}"
        style = _STYLES.get(str(entry.get("level")), "")
        lines = [line, *str(entry.get("exception", "")).splitlines()]
        console.print(Text("\n".join(map(plain, lines)), style), soft_wrap=True)


class FollowedLog(Observers):
    """Print the engine's log of the observed run as it grows, until the block ends."""

    def __init__(self, view: Any, console: Console) -> None:
        super().__init__([view])
        self._console = console
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> FollowedLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def started(self, run: RunRecord) -> None:
        super().started(run)
        file = Path(run.folder) / engine_log.FILE
        if self._thread is None and file.exists():
            log = entries(file, lambda: not self._ended.wait(LOOK))
            self._thread = threading.Thread(target=print_entries, args=(self._console, log), daemon=True)
            self._thread.start()
