"""Show the progress of a run on a terminal: a tree of its steps, redrawn in place, then the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from allranks.cli.views.summary import summary
from allranks.cli.views.tree import name_width, tree
from allranks.cli.views.whole_tables import print_wide
from allranks.runs.observer import Observer
from allranks.runs.records import RunRecord


class LiveTree(Observer):
    """Show a run on a terminal. Use it as a context manager, which restores the terminal however the run ends.

    A thread redraws the tree a few times per second. Reports from the engine draw nothing, so a thousand reports per
    second do not slow the engine down.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.time, frames_per_second: float = 5) -> None:
        self._console = console
        self._clock = clock
        self._frames_per_second = frames_per_second
        self._live: Live | None = None

    def __enter__(self) -> LiveTree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def started(self, run: RunRecord) -> None:
        self._stop()
        self._live = Live(
            _Frame(run, self._clock),
            console=self._console,
            refresh_per_second=self._frames_per_second,
            transient=True,
        )
        self._live.start(refresh=True)

    def ended(self, run: RunRecord) -> None:
        self._stop()
        width = max(self._console.width, name_width(run))
        print_wide(self._console, tree(run, self._clock(), width, fold_over=self._console.height), width)
        self._console.print()
        self._console.print(summary(run), soft_wrap=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _Frame:
    """Renders the state of the run when it is drawn."""

    def __init__(self, run: RunRecord, clock: Callable[[], float]) -> None:
        self._run = run
        self._clock = clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield tree(self._run, self._clock(), options.max_width, max(console.height - 2, 4))
        if self._run.status.ended:
            return
        stops = "watching; the run goes on" if self._run.submitted else "the run; allranks resume goes on from there"
        yield Text(f"  Ctrl-C stops {stops}", style="bright_black")
