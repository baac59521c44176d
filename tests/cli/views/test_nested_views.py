"""Runs with nested pipelines, loops and conditions, as a tree, as a table, as lines and as a summary."""

from collections.abc import Callable
from typing import Any

import pytest

from allranks.cli.views.progress import LiveTree, PlainLines
from allranks.cli.views.runs import print_run
from allranks.cli.views.summary import summary
from allranks.cli.views.tree import tree
from allranks.errors import InputError
from allranks.history.records import RunRecord, Status, StepRecord, Verdict
from run_records import BEGIN, NOW, make_curve, make_run, make_step

Screens = Callable[..., Any]


def make_iteration(index: int, status: Status = Status.COMPLETED) -> list[StepRecord]:
    ended = BEGIN + 10 * index + 7 if status.ended else None
    name = f"loop[{index}]"
    return [
        make_step(name, kind="iteration", status=status, started=BEGIN + 10 * index, ended=ended),
        make_step(f"{name}.train", metrics={"accuracy": make_curve(0.1, index / 1000, 0.2)}),
        make_step(f"{name}.test", needs=("train",), status=status, started=BEGIN + 10 * index + 5, ended=ended),
    ]


def make_nested(iterations: int, last: Status = Status.RUNNING) -> RunRecord:
    """A loop of which the last iteration is under way or has failed, before it a finished pipeline, then a branch."""
    steps = [
        make_step("tune", kind="pipeline"),
        make_step("tune.first"),
        make_step("tune.second"),
        make_step("loop", kind="do_while", component="", status=last, ended=None),
        *(step for index in range(iterations - 1) for step in make_iteration(index)),
        *make_iteration(iterations - 1, last),
        make_step("branch", kind="condition", needs=("loop",), status=Status.NOT_STARTED, started=None, ended=None),
        make_step("skipped", status=Status.SKIPPED, started=None, ended=None),
    ]
    return make_run(*steps, status=Status.RUNNING, ended=None)


def drawn(screen: Screens, run: RunRecord, height: int | None = None, fold_over: int | None = None) -> list[str]:
    console = screen(80)
    console.print(tree(run, NOW, 80, height, fold_over))
    return [line.rstrip() for line in console.lines]


def test_the_tree_nests_and_folds_completed_iterations(screen: Screens) -> None:
    assert drawn(screen, make_nested(3)) == [
        "● Digits  Running  1 min 40 s",
        "  calm_otter · rack · 9 steps",
        "├── ✓ tune           Completed   2 steps             4.0 s",
        "│   ├── ✓ first      Completed   1 process           4.0 s",
        "│   └── ✓ second     Completed   1 process           4.0 s",
        "├── ● loop           Running     3 iterations   1 min 39 s",
        "│   ├── ✓ loop[0]    Completed   2 steps             7.0 s  accuracy 0.2",
        "│   ├── ✓ loop[1]    Completed   2 steps             7.0 s  accuracy 0.2",
        "│   └── ● loop[2]    Running     2 steps        1 min 20 s",
        "│       ├── ✓ train  Completed   1 process           4.0 s",
        "│       └── ● test   Running     1 process      1 min 15 s",
        "├── ○ branch         NotStarted                after loop",
        "└── ⊘ skipped        Skipped     1 process",
    ]


def test_an_iteration_that_failed_is_open(screen: Screens) -> None:
    run = make_nested(2, Status.FAILED)
    (failed,) = [line for line in drawn(screen, run) if "test" in line]
    assert "✗ test" in failed


def test_a_thousand_steps_fit_on_a_screen_and_what_is_active_stays_in_sight(screen: Screens) -> None:
    run = make_nested(400)
    for height in (10, 24, 40):
        lines = drawn(screen, run, height)
        assert len(lines) <= height
        assert [line for line in lines if "loop[399]" in line and "Running" in line]
    assert [line for line in lines if "... 392 more" in line]
    assert "accuracy 0.398" in "".join(line for line in lines if "loop[398]" in line)


def test_completed_groups_are_folded_where_it_is_too_long(screen: Screens) -> None:
    steps = [make_step("prepare"), make_step("big", kind="pipeline"), *(make_step(f"big.step_{i}") for i in range(50))]
    run = make_run(*steps)
    assert len(drawn(screen, run)) == 2 + len(steps)
    folded = drawn(screen, run, fold_over=40)
    assert len(folded) == 4
    assert "50 steps" in folded[-1]
    console = screen(terminal=True)
    LiveTree(console, clock=lambda: NOW).ended(run)
    assert "step_49" not in console.text.getvalue()


def test_the_table_of_a_run_nests_and_one_group_can_be_asked_for(screen: Screens) -> None:
    whole, part, typed = screen(100), screen(100), screen(100)
    run = make_nested(10)
    print_run(whole, run, NOW)
    rows = [line.rstrip() for line in whole.lines]
    assert [row for row in rows if row.startswith("  loop[8] ") and "✓ Completed" in row]
    assert [row for row in rows if row.startswith("    test ")]
    assert [row for row in rows if row.startswith("  ... 2 more ")]
    assert [row for row in rows if row.startswith("loop ") and row.endswith("do_while")]
    assert not [row for row in rows if row.startswith("  loop[0] ")]
    print_run(part, run, NOW, "loop[0]")
    assert [line for line in part.lines if line.startswith("train ")]
    assert not [line for line in part.lines if line.startswith(("tune", "loop"))]
    print_run(typed, run, NOW, "loop.0")
    assert typed.text.getvalue() == part.text.getvalue()
    with pytest.raises(InputError, match="there is no such step"):
        print_run(screen(), run, NOW, "loop[10]")


def test_the_summary_says_metrics_of_a_loop_once(screen: Screens) -> None:
    run = make_nested(400, Status.COMPLETED)
    run.step("loop").status = Status.COMPLETED
    text = summary(run).plain
    (line,) = [line for line in text.splitlines() if "accuracy" in line]
    assert line.split() == ["loop[*].train", "accuracy", "0.2", "best", "0.399", "in", "loop[399].train"]


def test_the_summary_has_the_verdict_of_the_step_and_not_again_of_its_groups() -> None:
    run = make_nested(2, Status.FAILED)
    for name in ("loop", "loop[1]", "loop[1].test"):
        run.step(name).verdict = Verdict(name, "broken")
    text = summary(run).plain
    assert text.count("broken") == 1
    assert "allranks logs calm_otter 'loop[1].test'" in text


def test_of_many_failed_steps_the_summary_shows_some() -> None:
    steps = [make_step(f"step_{i}", status=Status.FAILED, verdict=Verdict(f"step_{i}", "broken")) for i in range(50)]
    text = summary(make_run(*steps, status=Status.FAILED)).plain
    assert text.count("broken") == 5
    assert "and 45 more failed steps: allranks show calm_otter" in text


def test_lines_name_steps_by_their_paths_and_groups_by_their_kind(screen: Screens) -> None:
    console = screen()
    run = make_nested(1)
    lines = PlainLines(console, clock=lambda: NOW)
    lines.started(run)
    for name in ("loop", "loop[0].test"):
        lines.changed(run, run.step(name))
    assert "5 steps" in console.lines[0]
    assert console.lines[1].split()[1:] == ["loop", "Running", "do_while"]
    assert console.lines[2].split()[1:4] == ["loop[0].test", "Running", "1"]
