"""Bars of steps and ranks."""

import pytest

from allranks.history.page.items import items_of
from allranks.history.page.timeline import LABELS, WIDTH, Block, timeline
from allranks.history.records import Status
from run_records import BEGIN, NOW, make_ranks, make_run, make_step


def test_bars_lie_within_the_picture_and_a_reused_step_has_none() -> None:
    steps = [
        make_step("reused", reused_from="earlier", started=BEGIN - 9999, ended=BEGIN - 9990),
        make_step("short", started=BEGIN, ended=BEGIN),
        make_step("long", started=BEGIN + 1, ended=BEGIN + 50, ranks=make_ranks(8, 8)),
        make_step("goes_on", started=BEGIN + 20, ended=None, status=Status.RUNNING),
        make_step("waits", started=None, ended=None, status=Status.NOT_STARTED),
    ]
    drawn = timeline(make_run(*steps), NOW, items_of(steps))
    assert drawn is not None
    (block,) = drawn.parts
    assert isinstance(block, Block)
    rows = {row.step.name: row for row in block.rows}
    assert rows["reused"].bar is None
    assert rows["waits"].bar is None
    assert len(rows["long"].ranks) == 64
    for row in block.rows:
        for bar in (*row.ranks, *([row.bar] if row.bar else [])):
            assert bar.x >= LABELS
            assert bar.x + bar.width <= WIDTH
            assert bar.y + bar.height <= block.height
    assert rows["goes_on"].bar is not None
    assert rows["long"].bar is not None
    assert rows["goes_on"].bar.x > rows["long"].bar.x


def test_the_time_before_the_first_rank_is_a_part_of_the_bar() -> None:
    step = make_step("train", ended=BEGIN + 21, ranks=make_ranks(1, 2))
    for rank, started in zip(step.ranks, (BEGIN + 6, BEGIN + 7), strict=True):
        rank.started, rank.ended = started, BEGIN + 21
    drawn = timeline(make_run(step), NOW, items_of([step]))
    assert drawn is not None
    (block,) = drawn.parts
    assert isinstance(block, Block)
    (row,) = block.rows
    assert row.bar is not None
    assert row.importing is not None
    assert (row.importing.x, row.importing.title.endswith("before the first rank started · 5.0 s")) == (row.bar.x, True)
    assert row.importing.width == pytest.approx(row.bar.width / 4, abs=0.2)
    assert row.importing.x + row.importing.width == pytest.approx(row.ranks[0].x, abs=0.2)


def test_a_rank_says_how_it_ended() -> None:
    ranks = make_ranks(1, 2)
    ranks[1].status, ranks[1].signal = Status.FAILED, "SIGKILL"
    step = make_step("train", ranks=ranks)
    drawn = timeline(make_run(step), NOW, items_of([step]))
    assert drawn is not None
    (block,) = drawn.parts
    assert isinstance(block, Block)
    assert "rank 1 · instance 0 · host · Failed · SIGKILL · 3.0 s" in block.rows[0].ranks[1].title
