import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from allranks.cli.console import console as make_console
from allranks.cli.views.progress import PlainLines
from allranks.history.records import Progress, RunRecord, Status

Screens = Callable[..., Any]


class Clock:
    now = 1783166584.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_line_a_change_of_a_step_and_none_for_its_ranks(screen: Screens, running: RunRecord, clock: Clock) -> None:
    console = screen()
    lines = PlainLines(console, clock)
    train = running.step("train")
    lines.changed(running, train)
    for rank in train.ranks:
        rank.status = Status.COMPLETED
        lines.changed(running, train)
    train.status, train.ended, train.progress = Status.COMPLETED, train.started + 12, Progress(12, 12)
    lines.changed(running, train)
    assert len(console.lines) == 2
    assert re.fullmatch(r"\d\d:\d\d:\d\d  train\s+Running\s+pytorch 2 x 2", console.lines[0])
    assert re.search(r"train\s+Completed\s+pytorch 2 x 2  12 s  12/12$", console.lines[1])


def test_the_start_names_run_and_instances(screen: Screens, running: RunRecord, clock: Clock) -> None:
    console = screen()
    PlainLines(console, clock).started(running)
    assert "run calm_otter of digits: 3 steps, instances rack" in console.lines[0]


def test_a_reused_result_and_a_retry_are_said(screen: Screens, running: RunRecord, clock: Clock) -> None:
    console = screen()
    lines = PlainLines(console, clock)
    lines.changed(running, running.step("prepare"))
    running.step("train").attempt = 1
    lines.changed(running, running.step("train"))
    assert "reused from brave_heron" in console.lines[0]
    assert "attempt 2" in console.lines[1]


def test_progress_comes_at_most_every_few_seconds(screen: Screens, running: RunRecord, clock: Clock) -> None:
    console = screen()
    lines = PlainLines(console, clock, every=5)
    for _ in range(100):
        lines.progressed(running, running.step("train"))
        clock.now += 0.1
    assert len(console.lines) == 2
    assert "200/400  epoch 3  train_loss 1.005  validation_accuracy 0.75" in console.lines[0]


def test_a_note_and_a_failure_each_stay_on_one_line(screen: Screens, failed: RunRecord, clock: Clock) -> None:
    console = screen(40)
    lines = PlainLines(console, clock)
    lines.noted(failed, failed.step("train"), "one\nnote that is far longer than the terminal is wide\x1b[2J")
    lines.changed(failed, failed.step("train"))
    assert len(console.lines) == 2
    assert "one note" in console.lines[0]
    assert "\x1b" not in console.lines[0]
    assert "rank 3 on instance 1: ValueError: bad batch" in console.lines[1]


def test_the_end_brings_the_summary(screen: Screens, failed: RunRecord, clock: Clock) -> None:
    console = screen()
    PlainLines(console, clock).ended(failed)
    assert "allranks resume calm_otter" in console.lines[-1]


def test_a_stream_without_unicode_gets_escapes_instead_of_an_error(failed: RunRecord, clock: Clock) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    PlainLines(make_console(stream), clock).ended(failed)
    stream.flush()
    assert b"rank 3 on instance 1" in raw.getvalue()
