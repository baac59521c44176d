"""Print a list of runs as a table, with the main metric and the inputs that differ."""

import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allranks.cli.views import print_whole, state, table_of, width_of
from allranks.errors import InputError, Problem, did_you_mean
from allranks.history.formatting import elapsed
from allranks.history.records import RunRecord
from allranks.history.run_columns import differing_inputs, main_metrics
from allranks.text import NOTHING, duration, number, plain, short_when

_LONGEST = 30
"""Maximum characters of an input."""
_MORE = 3


def _result(run: RunRecord, name: str) -> str | Text:
    """Return an input or a result of a run."""
    if name in run.inputs:
        return plain(run.inputs[name])[:_LONGEST]
    return number(run.results[name]) if name in run.results else NOTHING


_FACTS: dict[str, Callable[[RunRecord, float], str | Text]] = {
    "Run": lambda run, _: plain(run.id),
    "Name": lambda run, _: "" if run.job_name == run.id else plain(run.job_name),
    "Pipeline": lambda run, _: plain(run.name),
    "State": lambda run, _: state(run.status),
    "Created": lambda run, now: short_when(run.created, now),
    "Time": lambda run, now: duration(elapsed(run, now), whole=not run.status.ended),
    "Where": lambda run, _: plain(run.instances) if run.submitted else "here",
}


def print_runs(
    console: Console,
    runs: Sequence[RunRecord],
    columns: Sequence[str] = (),
    unreadable: Iterable[str] = (),
    now: float | None = None,
) -> None:
    """Print runs in the given order.

    columns:    names of facts, inputs and results; empty: the facts, and as many of the main metrics and of the inputs
                that differ as fit
    unreadable: ids of runs that could not be read

    Raise InputError for a column that no run has.
    """
    if not (runs or unreadable):
        console.print("No runs yet. Start one with: allranks run FILE")
        return
    now = time.time() if now is None else now
    chosen = dict.fromkeys([*main_metrics(runs), *differing_inputs(runs)])
    values = [*(chosen | dict.fromkeys(name for run in runs for name in (*run.results, *run.inputs)))]
    facts = [name for name in _FACTS if name not in ("Name", "Where")]
    facts[1:1] = ["Name"] if any(run.job_name not in ("", run.id) for run in runs) else []
    facts += ["Where"] if any(run.submitted for run in runs) else []
    names = [*facts, *chosen]
    if columns:
        known = {name.lower(): name for name in (*values, *_FACTS)}
        if wrong := [name for name in columns if name.lower() not in known]:
            expected = ", ".join([*(name.lower() for name in _FACTS), *values])
            fix = did_you_mean(wrong[0], [*known])
            raise InputError(Problem(f"--columns {wrong[0]}", "no run has it", expected, fix))
        names = list(dict.fromkeys(["Run", *(known[name.lower()] for name in columns)]))
    table = _runs_table(runs, names, unreadable, now)
    while not columns and len(names) > len(facts) and width_of(console, table) > console.width:
        names.pop()
        table = _runs_table(runs, names, unreadable, now)
    print_whole(console, table)
    more = [name for name in values if name not in names]
    if not columns and more:
        hint = f"more columns: {', '.join(more[:_MORE])}{', …' if len(more) > _MORE else ''} (--columns)"
        console.print(Text(plain(hint), "bright_black"), soft_wrap=True)


def _runs_table(runs: Sequence[RunRecord], names: Sequence[str], unreadable: Iterable[str], now: float) -> Table:
    marks = {"Name": "", "Pipeline": "", "Time": ">!"}
    numeric = {name for name in names if any(name in run.results for run in runs)}
    table = table_of(*(f"{marks.get(name, '>!' if name in numeric else '!')}{plain(name)}" for name in names))
    for run in runs:
        table.add_row(*(_FACTS[name](run, now) if name in _FACTS else _result(run, name) for name in names))
    for run_id in unreadable:
        table.add_row(plain(run_id), *(Text("unreadable", "red") if name == "State" else "" for name in names[1:]))
    return table
