"""What scripts print is printed while they run, above the view."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allranks.cli.values import streamed
from allranks.cli.views.live_logs import ScriptOutput
from allranks.cli.views.progress import LiveTree, PlainLines
from allranks.errors import InputError
from allranks.history.records import RunRecord, Status

Screens = Callable[..., Any]

LOGS = [b"one\n\x1b[31mred\x1b[0m\n1%\r100%\nkey=AKIAIOSFODNN7EXAMPLE\nunended", b"of 1\n1%\r100%\n", b"\xff\n", b""]
RANK_0 = ["one", "red", "100%", "key=***", "unended"]


@pytest.fixture
def logged(running: RunRecord, tmp_path: Path) -> RunRecord:
    """A run whose step has printed something on each rank."""
    running.folder = str(tmp_path)
    for rank, text in zip(running.step("train").ranks, LOGS, strict=True):
        rank.log, rank.status = str(tmp_path / f"rank_{rank.rank}"), Status.COMPLETED
        Path(rank.log).write_bytes(text)
    return running


@pytest.mark.parametrize(
    ("steps", "rank", "expected"),
    [
        (1, 0, RANK_0),
        (3, 0, [f"train:0 | {line}" for line in RANK_0]),
        (1, 1, ["of 1", "100%"]),
        (1, None, [f"train:0 | {line}" for line in RANK_0] + ["train:1 | of 1", "train:1 | 100%", "train:2 | \ufffd"]),
        (1, 7, ["no output: there is no rank 7, only 0 to 3"]),
    ],
    ids=["a step", "a pipeline", "another rank", "all", "no such rank"],
)
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_the_output_of_the_chosen_ranks_precedes_the_summary(
    screen: Screens, logged: RunRecord, steps: int, rank: int | None, expected: list[str], terminal: bool
) -> None:
    logged.steps = [step for step in logged.steps if steps > 1 or step.name == "train"]
    console = screen(terminal=terminal)
    view = LiveTree(console) if terminal else PlainLines(console)
    with view, ScriptOutput(view, console, rank) as output:
        output.started(logged)
        logged.status = Status.COMPLETED
        output.ended(logged)
    places = [next((at for at, line in enumerate(console.lines) if text in line), -1) for text in expected]
    assert -1 not in places, console.lines
    assert sorted(places) == places
    assert places[-1] < next(at for at, line in enumerate(console.lines) if "completed" in line)
    assert any("no output" in line for line in console.lines) is (rank == 7)


@pytest.mark.parametrize(("rank", "valid"), [("0", True), ("63", True), ("all", True), ("x", False), ("-1", False)])
def test_the_ranks_of_the_option(rank: str, valid: bool) -> None:
    if valid:
        assert streamed(rank) == rank
        return
    with pytest.raises(InputError, match="a number, or all"):
        streamed(rank)


@pytest.mark.parametrize("view", [LiveTree, PlainLines])
def test_an_announcement_is_a_line(view: type[LiveTree | PlainLines], screen: Screens, running: RunRecord) -> None:
    console = screen()
    view(console).announced(running, running.step("train"), "silent for 30 s: ranks 0 and 1")
    assert [line[10:] for line in console.lines] == ["train  silent for 30 s: ranks 0 and 1"]
