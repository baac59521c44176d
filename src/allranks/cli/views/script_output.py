"""Print what the scripts of a run print, while it runs."""

from __future__ import annotations

import re
import threading

from rich.console import Console
from rich.text import Text

from allranks.cli.console import plain
from allranks.history import log_reader, secret_values
from allranks.history.log_reader import LOOK, LogPrinter
from allranks.history.observer import Observer, Observers
from allranks.history.records import RunRecord

_LONGEST = 1 << 16
"""Bytes of an unfinished line that are printed, so that they do not fill the memory."""


_NAME = re.compile(r"(\S+:\d+ \| )(.*)", re.DOTALL)


class ScriptOutput(Observers):
    """Print new lines of the logs of the observed run's ranks, above the view of a terminal, until the run ends.

    rank: the rank of each step; None: all ranks
    """

    def __init__(self, view: Observer, console: Console, rank: int | None) -> None:
        super().__init__([view])
        self._lines = _ConsoleLines(console)
        self._rank = rank
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> ScriptOutput:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def started(self, run: RunRecord) -> None:
        super().started(run)
        self._thread = threading.Thread(target=self._follow, args=(run,), daemon=True)
        self._thread.start()

    def ended(self, run: RunRecord) -> None:
        self._stop()
        ranks = {rank.rank for step in run.steps for rank in step.ranks}
        if ranks and self._rank is not None and self._rank not in ranks:
            self._lines.write(f"no output: there is no rank {self._rank}, only 0 to {max(ranks)}\n".encode())
        super().ended(run)

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self, run: RunRecord) -> None:
        printer, more = LogPrinter(self._lines, secret_values.known(run)), True
        while more:
            more = not self._ended.wait(LOOK)  # before the logs are read, so that nothing is missed
            chosen = log_reader.chosen(run, None, self._rank, wait=True)
            printer.print_new(run, chosen, names=len(run.steps) > 1 or self._rank is None)


class _ConsoleLines:
    """Prints the complete lines of what is written to it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rest = b""

    def write(self, data: bytes) -> None:
        complete, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if len(self._rest) > _LONGEST:
            complete, newline, self._rest = complete + newline + self._rest, b"\n", b""
        if newline:
            lines = complete.decode("utf-8", "replace").split("\n")
            # Of a line with carriage returns only its end is printed, but with the name of its rank.
            named = (match.groups() if (match := _NAME.match(line)) else ("", line) for line in lines)
            self._console.print(Text("\n".join(name + plain(line) for name, line in named)), soft_wrap=True)

    def flush(self) -> None:
        """Do nothing: complete lines are printed at once."""
