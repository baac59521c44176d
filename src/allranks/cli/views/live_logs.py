"""Print the logs of a run while they grow: what its scripts print, and the log of its engine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from allranks import engine_log
from allranks.cli.console import plain
from allranks.history import log_reader, secret_values
from allranks.history.log_reader import LOOK, LogPrinter
from allranks.history.observer import Observer
from allranks.history.records import RunRecord

_LONGEST = 1 << 16
"""Bytes of an unfinished line from which on it is printed, to limit memory."""
_NAME = re.compile(r"(\S+:\d+ \| )(.*)", re.DOTALL)
_COLUMNS = ("time", "monotonic", "process", "pid", "level", "logger", "event", "node", "exception")
"""Keys with a column. The others are listed at the end of a line."""
_STYLES = {"debug": "bright_black", "warning": "yellow", "error": "red", "critical": "red"}


class _Follower(Observer):
    """Print what the observed run writes, on a thread, and pass its changes to a view. Use it as a context manager."""

    def __init__(self, view: Observer, console: Console) -> None:
        self.within = (view,)
        self._console = console
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self, print_new: Callable[..., None], *arguments: object) -> None:
        self._thread = threading.Thread(target=print_new, args=arguments, daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _continues(self) -> bool:
        """Wait a moment. Return whether there may be more lines; call it before reading, so that none is missed."""
        return not self._ended.wait(LOOK)


class ScriptOutput(_Follower):
    """Print new lines of the logs of the observed run's ranks, above the view of a terminal, until the run ends.

    rank: the rank of each step; None: all ranks
    """

    def __init__(self, view: Observer, console: Console, rank: int | None) -> None:
        super().__init__(view, console)
        self._lines = _ConsoleLines(console)
        self._rank = rank

    def started(self, run: RunRecord) -> None:
        super().started(run)
        self._start(self._print, run)

    def ended(self, run: RunRecord) -> None:
        self._stop()
        ranks = {rank.rank for step in run.steps for rank in step.ranks}
        if ranks and self._rank is not None and self._rank not in ranks:
            self._lines.write(f"no output: there is no rank {self._rank}, only 0 to {max(ranks)}\n".encode())
        super().ended(run)

    def _print(self, run: RunRecord) -> None:
        printer, more = LogPrinter(self._lines.write, secret_values.known(run)), True
        while more:
            more = self._continues()
            chosen = log_reader.chosen(run, None, self._rank, wait=True)
            printer.print_new(run, chosen, names=len(run.steps) > 1 or self._rank is None)


class _ConsoleLines:
    """Print the complete lines of the data written to it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rest = b""

    def write(self, data: bytes) -> None:
        complete, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if len(self._rest) > _LONGEST:
            complete, newline, self._rest = complete + newline + self._rest, b"\n", b""
        if newline:
            lines = complete.decode("utf-8", "replace").split("\n")
            # `plain` keeps only the end of a line with carriage returns. The name of its rank is printed anyway.
            named = (match.groups() if (match := _NAME.match(line)) else ("", line) for line in lines)
            self._console.print(Text("\n".join(name + plain(line) for name, line in named)), soft_wrap=True)


def engine_entries(file: Path, wait: Callable[[], bool] = lambda: False) -> Iterator[dict[str, Any]]:
    """Yield the entries of a log. Lines that are not entries, such as an incomplete last one, are skipped.

    wait: called before the file is read; returns whether to read again afterwards
    """
    with file.open("rb") as log:
        line, more = b"", True
        while more:
            more = wait()
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


def print_engine_entries(console: Console, log: Iterator[dict[str, Any]]) -> None:
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


class FollowedLog(_Follower):
    """Print the engine's log of the observed run as it grows, until the block ends."""

    def started(self, run: RunRecord) -> None:
        super().started(run)
        file = Path(run.folder) / engine_log.FILE
        if self._thread is None and file.exists():
            self._start(print_engine_entries, self._console, engine_entries(file, self._continues))
