"""The results of a benchmark: a table for people, a line of JSON per figure for programs, and an exit code."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """A measurement of allranks, and the same measurement of a peer, from the same run of the benchmark.

    name: what was measured, with its unit
    ours: the value for allranks
    peer: the value for the peer; None if there is no peer, or it could not be measured
    goal: limit of `of`; None if the figure is for information only
    of:   what the goal limits: "ours", or "ratio" for ours divided by the peer's
    at_least: whether the goal is a minimum, as of a rate, and not a maximum
    """

    name: str
    ours: float
    peer: float | None = None
    goal: float | None = None
    of: str = "ours"
    at_least: bool = False

    @property
    def ratio(self) -> float | None:
        """Ours divided by the peer's; None without a peer."""
        return self.ours / self.peer if self.peer else None

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met; None if there is no goal, or no value to compare with it."""
        value = self.ours if self.of == "ours" else self.ratio
        if self.goal is None or value is None:
            return None
        return value >= self.goal if self.at_least else value <= self.goal

    @property
    def limit(self) -> str | None:
        """The goal in words; None if there is none."""
        return None if self.goal is None else f"{self.of} {'>=' if self.at_least else '<='} {self.goal:g}"

    def line(self) -> str:
        """Return the figure as one line of JSON."""
        return json.dumps(
            {
                "figure": self.name,
                "ours": _rounded(self.ours),
                "peer": _rounded(self.peer),
                "ratio": _rounded(self.ratio),
                "goal": self.limit,
                "holds": self.holds,
            }
        )


def finish(title: str, figures: Sequence[Figure]) -> NoReturn:
    """Print the figures, and exit with 1 if a goal is missed, else with 0."""
    table = Table(title=title, title_justify="left")
    for column in ("", "ours", "peer", "ratio", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for figure in figures:
        texts = [f"{value:.3g}" if value is not None else "" for value in (figure.ours, figure.peer, figure.ratio)]
        style = {True: "green", False: "red", None: ""}[figure.holds]
        table.add_row(figure.name, *texts, figure.limit or "", style=style)
    Console().print(table)
    for figure in figures:
        print(figure.line())
    sys.exit(1 if any(figure.holds is False for figure in figures) else 0)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
