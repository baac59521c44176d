"""A sweep on the page of its run: its trials in a table, as parallel coordinates, and the best value over time."""

from __future__ import annotations

import math
import re

import pytest

from allranks.history.nested import nested
from allranks.history.page.page import page
from allranks.history.page.sweeps import MOST, sweeps_of
from allranks.history.records import Status, StepRecord
from run_records import NOW, make_curve, make_run, make_step
from shown_page import Page

RATES = (1e-4, 1e-3, 1e-2, 1e-1)


def sweep(values: tuple[float | None, ...], goal: str = "maximize") -> list[StepRecord]:
    """A sweep with a trial for each value of its metric; one without a value failed."""
    inputs = {"data": "/data", "search_space.lr": "loguniform(-9, -2)", "search_space.kind": "choice(a, b)"}
    best = {"accuracy": make_curve(0.9)}
    steps = [make_step("tune", kind="sweep", inputs={**inputs, "objective": f"{goal} accuracy"}, metrics=best)]
    for number, value in enumerate(values):
        steps.append(
            make_step(
                f"tune.trial[{number}]",
                status=Status.FAILED if value is None else Status.COMPLETED,
                inputs={"lr": str(RATES[number % 4]), "kind": "ab"[number % 2], "data": "/data"},
                metrics={} if value is None else {"accuracy": make_curve(0.5, value)},
                ended=NOW + number,
            )
        )
    return steps


@pytest.mark.parametrize(
    ("goal", "order", "so_far"), [("maximize", "3102", "0.6 0.8 0.9"), ("minimize", "0132", "0.4")]
)
def test_the_trials_in_their_order_and_the_best_value_over_time(goal: str, order: str, so_far: str) -> None:
    values = (0.6, 0.8, None, 0.9) if goal == "maximize" else (0.4, 0.8, None, 0.9)
    (figures,) = sweeps_of(sweep(values, goal))
    assert "".join(str(trial.number) for trial in figures.rows) == order
    assert figures.progress is not None
    best, each = figures.progress.series
    assert [f"{value:g}" for _, value in best.points][: len(so_far.split())] == so_far.split()
    assert [title.partition(":")[0] for _, _, title in each.dots] == ["trial 0", "trial 1", "trial 3"]
    assert each.path == ""


def test_parallel_coordinates_have_an_axis_for_each_parameter_and_the_metric() -> None:
    (figures,) = sweeps_of(sweep((0.6, 0.8, 0.7, 0.9)))
    lr, kind, accuracy = figures.axes
    assert [axis.name for axis in figures.axes] == ["lr", "kind", "accuracy"]
    assert {tick.label for tick in lr.ticks} == {"0.0001", "0.001", "0.01", "0.1"}  # logarithmic
    assert [tick.label for tick in kind.ticks] == ["a", "b"]
    assert (figures.lines[-1].trial.number, figures.lines[-1].share) == (3, 1.0)
    assert all(line.path.startswith(f"M{lr.x} ") and f"L{accuracy.x} " in line.path for line in figures.lines)


def test_the_page_shows_a_row_for_each_trial_with_a_link_to_its_details() -> None:
    html = page(make_run(*sweep((0.6, None, math.nan, 0.9))), NOW)
    assert re.findall("<b>(.*)</b><span>accuracy</span><small>(.*)</small>", html) == [("0.9", "tune")]
    shown = Page(html)
    ids = {attrs["id"] for _, attrs in shown.tags if attrs.get("id")}
    links = {
        attrs["href"] for tag, attrs in shown.tags if tag == "a" and (attrs.get("href") or "").startswith("#step-")
    }
    assert "trials-0" in ids
    assert {f"#step-tune.trial%5B{number}%5D" for number in range(4)} <= links
    assert {link.removeprefix("#") for link in links if link} <= ids


def test_a_page_with_many_trials_shows_the_best_ones() -> None:
    (figures,) = sweeps_of(sweep(tuple(number / 1000 for number in range(MOST + 50))))
    assert len(figures.rows) == MOST
    html = page(make_run(*sweep(tuple(number / 1000 for number in range(MOST + 50)))), NOW)
    assert "… 50 more trials" in html


def test_trials_are_directly_in_their_sweep() -> None:
    (root,) = nested(sweep((0.6, 0.8)))
    assert [node.name for node in root.children] == ["trial[0]", "trial[1]"]
    assert all(node.is_iteration for node in root.children)
