"""Learning curves."""

import math

from allranks.history.page.chart import charts
from run_records import make_curve, make_step


def test_metrics_of_a_family_share_a_chart_and_a_single_value_has_none() -> None:
    metrics = {
        "train_loss": make_curve(2, 1),
        "lr": make_curve(1, 2),
        "val_loss": make_curve(3),
        "accuracy": make_curve(1),
    }
    drawn = charts(make_step("train", metrics=metrics))
    assert [(chart.title, [series.name for series in chart.series]) for chart in drawn] == [
        ("loss", ["train_loss", "val_loss"]),
        ("lr", ["lr"]),
    ]


def test_a_curve_of_ten_thousand_points_is_drawn_with_as_many_as_there_are_pixels() -> None:
    values = [math.sin(step / 30) for step in range(10_000)]
    values[1234] = 7.0
    (chart,) = charts(make_step("train", metrics={"loss": make_curve(*values)}))
    (series,) = chart.series
    assert series.total == 10_000
    assert len(series.points) < 1000
    assert (1234.0, 7.0) in series.points
    assert chart.y is not None
    assert f" {chart.y(7.0)}" in series.path


def test_values_that_are_no_numbers_break_the_line_and_are_marked() -> None:
    (chart,) = charts(make_step("train", metrics={"loss": make_curve(3.0, 2.0, math.nan, math.inf, 1.0)}))
    (series,) = chart.series
    assert series.path.count("M") == 2
    assert [mark.label for mark in series.marks] == ["loss is NaN at 2", "loss is inf at 3"]
    assert [x for x, *_ in chart.data()["series"][0]["points"]] == [0.0, 1.0, 4.0]
