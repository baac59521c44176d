"""The progress of a run in a notebook: the graph and a table of its steps, updated in place."""

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from allranks.history.curves import headline
from allranks.history.formatting import SYMBOLS, elapsed
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.text import duration, number, plain

ROWS = 40
"""Maximum number of steps in the table. Running and failed steps come first."""

_COLORS = {
    Status.COMPLETED: "#2e9e5b",
    Status.FAILED: "#d64545",
    Status.RUNNING: "#2f7fd6",
    Status.PREPARING: "#2f7fd6",
    Status.CANCELED: "#c78a1b",
    Status.INTERRUPTED: "#c78a1b",
}
_URGENT = (Status.RUNNING, Status.PREPARING, Status.FAILED)

_displays: dict[str, list[Any]] = {}
"""The displays of jobs, by the ids of their runs."""


@dataclass
class NotebookView:
    """The view of a run in the output of a cell. read: returns the current state of the run"""

    read: Callable[[], RunRecord]
    display: Any

    def until(self, is_over: Callable[[float], bool], timeout: float | None, frame: float) -> bool:
        """Update the view until the run is over, or for at most `timeout` seconds. Return whether it is over.

        is_over: waits for a number of seconds
        frame:   seconds between two updates
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            over = is_over(max(min(frame, end - time.monotonic()), 0))
            self.update()
            if over or time.monotonic() >= end:
                return over

    def update(self) -> None:
        """Show the current state, also in each display of the run's job."""
        record = self.read()
        for display in (self.display, *_displays.get(record.id, ())):
            display.update(_cell(record))


@contextlib.contextmanager
def shown(read: Callable[[], RunRecord]) -> Iterator[NotebookView | None]:
    """Show the run in a notebook for the duration of the block. Yield None outside of notebooks."""
    if _shell() is None:
        yield None
        return
    view = NotebookView(read, _display(read()))
    try:
        yield view
    finally:
        view.update()


def show_jobs(kind: type, find: Callable[[Any], RunRecord | None]) -> None:
    """Display jobs in a notebook as `shown` does. kind: their class. find: returns the run of a job; None if it is
    unknown"""

    def show(job: Any) -> None:
        record = find(job)
        if record is None:
            raise NotImplementedError  # IPython then displays the job as any other object
        _displays.setdefault(record.id, []).append(_display(record))

    if shell := _shell():
        shell.display_formatter.ipython_display_formatter.for_type(kind, show)


def _shell() -> Any:
    """Return the shell of the notebook's kernel; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if hasattr(shell, "kernel") else None


def _display(record: RunRecord) -> Any:
    from IPython import display  # only the kernel of a notebook has it

    show: Any = display.display  # without types
    return show(_cell(record), display_id=True)


def _cell(record: RunRecord) -> Any:
    from IPython import display  # only the kernel of a notebook has it

    cell: Any = display.HTML  # without types
    return cell(html(record))


def html(record: RunRecord) -> str:
    """Return the state of a run, with a table of its steps, as HTML."""
    urgent = [step for step in record.steps if step.status in _URGENT]
    others = [step for step in record.steps if step.status not in _URGENT]
    shown_steps = {id(step) for step in (*urgent, *others)[:ROWS]}
    rows = _rows([step for step in record.steps if id(step) in shown_steps])
    if hidden := len(record.steps) - len(shown_steps):
        rows += Markup("<tr><td colspan=4>and {} more</td></tr>").format(hidden)
    return Markup("<div><b>{}</b> <code>{}</code> {}<table>{}</table></div>").format(
        plain(record.display_name or record.name), record.id, record.status, rows
    )


def _rows(steps: list[StepRecord]) -> Markup:
    left = Markup("text-align:left")
    rows = Markup("")
    for step in steps:
        color = _COLORS.get(step.status, "inherit")
        metric = next((f"{name} {number(point.value)}" for _, name, point in headline([step], 1)), "")
        seconds = elapsed(step, time.time())
        cells = (
            (left, plain(step.name)),
            (Markup("{};color:{}").format(left, color), f"{SYMBOLS[step.status]} {step.status}"),
            ("", f"reused from {step.reused_from}" if step.reused_from else duration(seconds) if seconds else ""),
            (left, metric),
        )
        row = Markup("").join(Markup("<td style='{}'>{}</td>").format(style, text) for style, text in cells)
        rows += Markup("<tr>{}</tr>").format(row)
    return rows
