"""A sweep on the page of its run."""

import math
import re

import pytest

from allranks.history.nested import nested, sweeps
from allranks.history.page.page import page
from run_records import NOW, make_run, make_sweep
from shown_page import Page


@pytest.mark.parametrize(("goal", "order"), [("maximize", "3102"), ("minimize", "0132")])
def test_the_best_trials_come_first(goal: str, order: str) -> None:
    (found,) = sweeps(make_sweep((0.6, 0.8, None, 0.9), goal))
    assert "".join(str(trial.number) for trial in found.ranking) == order


def test_the_page_shows_a_row_for_each_trial_with_a_link_to_its_details() -> None:
    html = page(make_run(*make_sweep((0.6, None, math.nan, 0.9))), NOW)
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
    html = page(make_run(*make_sweep(tuple(number / 1000 for number in range(150)))), NOW)
    assert len(re.findall('<tr><th scope="row"><a href="#step-tune', html)) == 100
    assert "… 50 more trials" in html


def test_trials_are_directly_in_their_sweep() -> None:
    (root,) = nested(make_sweep((0.6, 0.8)))
    assert [node.name for node in root.children] == ["trial[0]", "trial[1]"]
    assert all(node.is_iteration for node in root.children)
