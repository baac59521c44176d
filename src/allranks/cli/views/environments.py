"""Show how the environments of a run are being made: a bar on a terminal, and a line each elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from allranks.cli.console import errors, plain
from allranks.runs.formatting import duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Installations:
    """Use it as a context manager, and as the `Report` of what makes environments."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._started: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        self._progress: Progress | None = None

    def __enter__(self) -> Installations:
        return self

    def __call__(self, name: str, what: str, ready: int, total: int) -> None:
        console = errors()
        self._ended[name] = time.monotonic()
        if not console.is_terminal:
            if name not in self._started:
                console.print(f"environment {plain(name)}: it is being made, once for all runs", soft_wrap=True)
            self._started.setdefault(name, self._ended[name])
            return
        if self._progress is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = TextColumn("environment {task.fields[name]}"), BarColumn(), TimeElapsedColumn()
            self._progress = Progress(*columns, TextColumn("{task.description}"), console=console, transient=True)
            self._progress.start()
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task("", total=None, name=plain(name))
            self._started[name] = self._ended[name]
        self._progress.update(self._tasks[name], description=plain(what)[:60], completed=ready, total=total or None)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()
        if kind is None:
            for name, started in self._started.items():
                text = f"environment {plain(name)}: made in {duration(self._ended[name] - started)}"
                errors().print(text, soft_wrap=True)
