"""Show the progress of a run, then its result: as a tree on a terminal, and as one line per change elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.segment import Segments
from rich.text import Text

from allranks.cli.console import with_links
from allranks.cli.views.summary import summary
from allranks.cli.views.tree import name_width, tree
from allranks.history.formatting import cause, elapsed, progress, reason, step_layout
from allranks.history.nested import count_steps
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.text import clock, count, duration, number, plain, shortened

_CURVES = 4


def view_of(console: Console, *, plain: bool = False) -> LiveTree | PlainLines:
    """Return the view for a console. Use it as a context manager, and as the observer of the run.

    plain: whether to print lines even on a terminal, because other lines are printed between them
    """
    is_live = console.is_terminal and not console.is_dumb_terminal and not plain
    return LiveTree(console) if is_live else PlainLines(console)


class PlainLines(Observer):
    """Print a run as lines: ``12:03:04  train     Running      pytorch 2 x 2``.

    clock: returns seconds since the epoch
    every: minimum seconds between two lines about the progress of a step
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.time, every: float = 5.0) -> None:
        self._console = console
        self._clock = clock
        self._every = every
        self._width = 0
        self._printed_states: dict[str, tuple[Status, int]] = {}
        self._progress_times: dict[str, float] = {}

    def started(self, run: RunRecord) -> None:
        self._width = max((len(plain(step.name)) for step in run.steps), default=0)
        where = run.instances if run.submitted else f"instances {run.instances}"
        self._line("", f"run {run.id} of {run.name}: {count(count_steps(run.steps), 'step')}, {where}")

    def changed(self, run: RunRecord, step: StepRecord) -> None:  # noqa: ARG002
        state = (step.status, step.attempt)
        before = self._printed_states.get(step.name, (Status.NOT_STARTED, 0))
        if state != before:  # not only a rank, of which a step may have many
            self._printed_states[step.name] = state
            self._progress_times.pop(step.name, None)
            self._line(step.name, f"{step.status!s:<11}  {_description(step, self._clock())}")

    def progressed(self, run: RunRecord, step: StepRecord) -> None:  # noqa: ARG002
        now = self._clock()
        if now - self._progress_times.get(step.name, -self._every) >= self._every:
            self._progress_times[step.name] = now
            self._line(step.name, f"{'progress':<11}  {_progress(step)}")

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:  # noqa: ARG002
        self._line(step.name if step else "", f"{'note':<11}  {text}")

    def announced(self, run: RunRecord, step: StepRecord, text: str) -> None:  # noqa: ARG002
        self._line(step.name, text)

    def ended(self, run: RunRecord) -> None:
        self._console.print()
        self._console.print(with_links(self._console, summary(run)), soft_wrap=True)

    def _line(self, step: str, text: str) -> None:
        self._width = max(self._width, len(plain(step)))
        name = f"{plain(step):<{self._width}}  " if step else ""
        line = Text(f"{clock(self._clock())}  {name}{' '.join(plain(text).splitlines())}".rstrip())
        self._console.print(line, soft_wrap=True)


def _description(step: StepRecord, now: float) -> str:
    parts = [step_layout(step) if step.kind == "command" else step.kind]
    if step.attempt:
        parts.append(f"attempt {step.attempt + 1}")
    if step.reused_from:
        parts.append(f"reused from {step.reused_from}")
    elif step.status.ended:
        parts += filter(None, (duration(elapsed(step, now)), progress(step)))
    if step.verdict:
        why = shortened(reason(step.verdict)) if step.verdict.rank is None else ""
        parts.append(": ".join(filter(None, (cause(step.verdict), why))))
    return "  ".join(parts)


def _progress(step: StepRecord) -> str:
    parts = []
    # A step may report metrics without progress.
    if step.progress is not None and (step.progress.done or step.progress.total):
        total = f"/{step.progress.total:,}" if step.progress.total else ""
        parts.append(f"{step.progress.done:,}{total}")
        if step.progress.epoch is not None:
            parts.append(f"epoch {step.progress.epoch}")
    values = [f"{name} {number(points[-1].value)}" for name, points in step.metrics.items() if points]
    return "  ".join(parts + values[:_CURVES])


class LiveTree(Observer):
    """Show a run on a terminal. Use it as a context manager, which restores the terminal.

    A thread redraws the tree a few times per second. Reports from the engine draw nothing, so that thousands of reports
    per second do not slow the engine down.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.time) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None

    def __exit__(self, *_: object) -> None:
        self._stop()

    def started(self, run: RunRecord) -> None:
        self._stop()
        self._live = Live(
            get_renderable=lambda: self._frame(run), console=self._console, refresh_per_second=5, transient=True
        )
        self._live.start(refresh=True)

    def announced(self, run: RunRecord, step: StepRecord, text: str) -> None:  # noqa: ARG002
        line = Text(f"{clock(self._clock())}  {plain(step.name)}  {plain(text)}", "yellow")
        self._console.print(line, soft_wrap=True)

    def ended(self, run: RunRecord) -> None:
        self._stop()
        width = max(self._console.width, name_width(run))
        whole = tree(run, self._clock(), width, fold_over=self._console.height)
        # Rich would truncate lines that are longer than the terminal.
        lines = self._console.render(whole, self._console.options.update_width(width))
        self._console.print(Segments(lines), crop=False)
        self._console.print()
        self._console.print(with_links(self._console, summary(run)), soft_wrap=True)

    def _frame(self, run: RunRecord) -> Group:
        drawn = tree(run, self._clock(), self._console.width, max(self._console.height - 2, 4))
        if run.status.ended:
            return Group(drawn)
        stops = "watching; the run continues" if run.submitted else "the run; allranks resume continues it"
        return Group(drawn, Text(f"  Ctrl-C stops {stops}", style="bright_black"))

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
