import threading
from collections.abc import Callable
from typing import Any

import pytest

import bounded
from allranks.cli.views.progress import LiveTree
from allranks.cli.views.summary import summary
from allranks.cli.views.tree import sparkline, tree
from allranks.history.records import FaultRecord, Point, RankRecord, RunRecord, Status, StepRecord

NOW = 1783166584.0 + 12
Screens = Callable[..., Any]


def drawn(screen: Screens, run: RunRecord, width: int = 80, height: int | None = None) -> list[str]:
    console = screen(width)
    console.print(tree(run, NOW, width, height))
    return console.lines


def line_of(lines: list[str], *words: str) -> str:
    found = [line for line in lines if all(word in line for word in words)]
    assert len(found) == 1, (words, lines)
    return found[0]


def make_run(*steps: StepRecord) -> RunRecord:
    return RunRecord("calm_otter", "digits", "", "digits.py", "rack", Status.RUNNING, NOW - 5, steps=list(steps))


def make_step(name: str, status: Status = Status.RUNNING) -> StepRecord:
    return StepRecord(name, "", "c", "pytorch", 2, 2, (), status, started=NOW - 3)


def test_steps_stand_in_the_graphs_order_with_state_layout_and_time(screen: Screens, running: RunRecord) -> None:
    lines = drawn(screen, running)
    rows = [line_of(lines, name, state) for name, state in (("train", "Running"), ("evaluate", "NotStarted"))]
    assert "pytorch 2 x 2" in rows[0]
    assert "11 s" in rows[0]
    assert "after prepare, train" in rows[1]
    assert "reused from brave_heron" in line_of(lines, "prepare", "Completed")
    assert [lines.index(row) for row in rows] == sorted(lines.index(row) for row in rows)


def test_a_step_that_runs_shows_ranks_progress_and_its_newest_metrics(screen: Screens, running: RunRecord) -> None:
    lines = drawn(screen, running)
    progress = line_of(lines, "200/400")
    assert "●● ●●" in progress
    assert "epoch 3" in progress
    # 20 steps a second by the curve's own times, 200 steps to go.
    assert "10 s left" in progress
    assert "1.005" in line_of(lines, "train_loss")
    assert "0.75" in line_of(lines, "validation_accuracy")


def test_metrics_of_a_step_that_ended_make_room(screen: Screens, completed: RunRecord) -> None:
    assert not [line for line in drawn(screen, completed) if "train_loss" in line]


@pytest.mark.parametrize(("instances", "processes"), [(1, 2), (2, 8), (8, 8), (64, 1)])
def test_up_to_64_ranks_have_a_glyph_each(screen: Screens, instances: int, processes: int) -> None:
    step = make_step("train")
    step.ranks = [
        RankRecord(rank, rank // processes, rank % processes, "", Status.RUNNING)
        for rank in range(instances * processes)
    ]
    step.ranks[-1].status = Status.FAILED
    glyphs = "".join(drawn(screen, make_run(step))[3:])
    assert glyphs.count("●") == instances * processes - 1
    assert glyphs.count("✗") == 1


def test_more_ranks_are_counted_by_state(screen: Screens) -> None:
    step = make_step("train")
    step.ranks = [RankRecord(rank, rank, 0, "", Status.RUNNING) for rank in range(200)]
    step.ranks[7].status = Status.FAILED
    lines = drawn(screen, make_run(step))
    assert line_of(lines, "199 Running", "1 Failed")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_wider_than_the_terminal(screen: Screens, running: RunRecord, width: int) -> None:
    running.steps[1].name = "train_" + "x" * 100
    running.steps[1].metrics["a_very_long_name_of_a_metric_that_somebody_gave"] = [
        Point(0, 1.0, NOW),
        Point(1, 2.0, NOW),
    ]
    running.steps[2].needs = tuple(f"step_{index}" for index in range(50))
    assert max(len(line) for line in drawn(screen, running, width)) <= width


def test_a_hundred_steps_fit_a_small_terminal_and_those_that_run_stay_in_sight(screen: Screens) -> None:
    steps = [make_step(f"done_{index}", Status.COMPLETED) for index in range(60)]
    steps += [make_step(f"active_{index}") for index in range(3)]
    steps += [make_step(f"later_{index}", Status.NOT_STARTED) for index in range(37)]
    lines = drawn(screen, make_run(*steps), height=20)
    assert len(lines) <= 20
    assert all(line_of(lines, f"active_{index}") for index in range(3))
    assert line_of(lines, "60 steps Completed")
    assert line_of(lines, "37 steps NotStarted")
    assert len(drawn(screen, make_run(*steps))) > 100


def test_names_and_notes_cannot_steer_the_terminal(screen: Screens, running: RunRecord) -> None:
    running.notes = ["\x1b[2J\x1b]0;title\x07wiped\rkept"]
    running.steps[1].metrics = {"\x1b[31mloss": [Point(0, 1.0, NOW)]}
    text = "\n".join(drawn(screen, running))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "kept" in text
    assert "loss" in text


def test_at_the_end_the_tree_and_the_summary_stay_and_the_cursor_is_back(screen: Screens, failed: RunRecord) -> None:
    console = screen(terminal=True)
    with LiveTree(console, clock=lambda: NOW) as live:
        live.started(failed)
        live.changed(failed, failed.steps[1])
        live.ended(failed)
    written = console.text.getvalue()
    last_frame = written.rpartition("\x1b[?25h")[2]
    assert "pytorch 2 x 2" in last_frame
    assert "allranks logs calm_otter train --rank 3" in last_frame
    assert "\x1b[?25l" not in last_frame


def test_the_cursor_is_back_when_the_engine_breaks(screen: Screens, running: RunRecord) -> None:
    console = screen(terminal=True)

    def watch() -> None:
        with LiveTree(console, clock=lambda: NOW) as live:
            live.started(running)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        watch()
    written = console.text.getvalue()
    assert written.rfind("\x1b[?25h") > written.rfind("\x1b[?25l") >= 0


def test_a_record_may_change_while_it_is_drawn(screen: Screens, running: RunRecord) -> None:
    stop = threading.Event()

    def engine() -> None:
        step = running.steps[1]
        for index in range(10**9):
            if stop.is_set():
                return
            step.metrics[f"metric_{index % 500}"] = [Point(index, 1.0, NOW), Point(index, 2.0, NOW)]
            if index % 500 == 0:
                step.metrics.clear()
            step.notes.append("note")
            del step.notes[:-2]

    thread = threading.Thread(target=engine)
    thread.start()
    try:
        for _ in range(60):
            assert drawn(screen, running)
    finally:
        stop.set()
        bounded.join(thread)


@pytest.mark.parametrize(
    ("values", "width", "expected"),
    [
        ([], 8, ""),
        ([1.0], 8, ""),
        ([0.0, 1.0], 8, "▁▇"),
        ([2.0, 2.0, 2.0], 8, "▁▁▁"),
        ([1.0, float("nan"), 0.0], 8, "▇×▁"),
        ([float("inf"), 1.0, 0.0], 8, "×▇▁"),
        ([float("nan"), float("nan")], 8, "××"),
        ([-1e308, 1e308], 8, "▁▇"),
        ([4.0, 4.0, 0.0, 0.0], 2, "▇▁"),
        ([1.0, 0.0], 0, ""),
    ],
)
def test_sparkline(values: list[float], width: int, expected: str) -> None:
    assert sparkline([Point(step, value, 0.0) for step, value in enumerate(values)], width) == expected


def test_the_sparkline_of_a_long_falling_curve_falls_within_its_width() -> None:
    line = sparkline([Point(step, -float(step), 0.0) for step in range(10_000)], 24)
    assert len(line) == 24
    assert list(line) == sorted(line, reverse=True)
    assert line[0] != line[-1]


def test_the_summary_of_a_failed_run_says_who_why_and_what_next(failed: RunRecord) -> None:
    text = summary(failed).plain
    for said in (
        "Digits failed after 12 s",
        "train: rank 3 on instance 1: ValueError: bad batch",
        "std_log_process_3.txt",
        "│ step 198",
        "allranks logs calm_otter train --rank 3",
        "allranks resume calm_otter",
    ):
        assert said in text


def test_the_summary_names_the_signal_and_the_fault_of_the_last_attempt(failed: RunRecord) -> None:
    verdict = failed.steps[1].verdict
    assert verdict is not None
    for name, value in (("reason", "ended by SIGKILL"), ("exit_code", None), ("signal", "SIGKILL")):
        object.__setattr__(verdict, name, value)
    failed.faults = [FaultRecord(f"kill:rank={attempt}", verdict.step, attempt, 0.0) for attempt in (0, 1)]
    text = summary(failed).plain
    assert "rank 3 on instance 1 ended by SIGKILL\n  injected by --fault kill:rank=0\n" in text
    assert "kill:rank=1" not in text


def test_the_summary_of_a_completed_run_gives_outputs_metrics_and_the_page(
    screen: Screens, completed: RunRecord
) -> None:
    console = screen(40)
    console.print(summary(completed), soft_wrap=True)
    assert completed.outputs["model"] in line_of(console.lines, "model")
    assert "best 0.875 at step 100" in line_of(console.lines, "validation_accuracy")
    assert "0.9778" in line_of(console.lines, "test_accuracy")
    assert completed.page in line_of(console.lines, "page")
    assert "1 of 3 steps reused" in line_of(console.lines, "completed in 14 s")
    assert "resume" not in console.text.getvalue()
