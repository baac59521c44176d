"""Axes and their marks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allranks.history.page.chart import count_scale, time_scale, value_scale


@settings(deadline=None)
@given(
    low=st.floats(-1e100, 1e100),
    high=st.floats(-1e100, 1e100),
)
def test_an_axis_covers_its_values_with_few_round_marks(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    scale, ticks = value_scale(low, high, 200, 10)
    assert 9.9 <= scale(high) <= scale(low) <= 200.1
    assert 2 <= len(ticks) <= 12
    assert all(9.9 <= tick.at <= 200.1 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted((tick.at for tick in ticks), reverse=True)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.1, 0.97, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (2.0, 2.0, ["1.0", "1.5", "2.0", "2.5", "3.0"]),
        (0.0, 4e-11, ["0", "1e-11", "2e-11", "3e-11", "4e-11"]),
        (0, 40_000, ["0", "10,000", "20,000", "30,000", "40,000"]),
    ],
)
def test_marks_are_what_a_person_would_choose(low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in value_scale(low, high, 0, 1)[1]] == labels


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.9, ["0", "0.1 s"]),
        (40, ["0", "5 s"]),
        (300, ["0", "30 s", "1 min", "1 min 30 s"]),
        (7200, ["0", "15 min"]),
        (86400 * 9, ["0", "1 d"]),
    ],
)
def test_marks_of_time_are_what_clocks_count_in(seconds: float, labels: list[str]) -> None:
    found = [tick.label for tick in time_scale(seconds, 0, 100)[1]]
    assert found[: len(labels)] == labels
    assert len(found) <= 13


def test_training_steps_are_marked_with_whole_numbers() -> None:
    assert [tick.label for tick in count_scale(0, 3, 0, 100)[1]] == ["0", "1", "2", "3"]
    assert [tick.label for tick in count_scale(7, 7, 0, 100)[1]] == ["7"]
