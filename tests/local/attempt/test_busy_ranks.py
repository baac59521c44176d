"""How long ranks may wait for one that computes: it evaluates, or loops without an end."""

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import bounded
from allranks.history.records import Status, StepRecord
from allranks.local import stack_dumps
from allranks.local.attempt import stall
from allranks.local.attempt.stall import StallWatch
from allranks.verdict.rank_stack import Frame, Stack
from run_records import make_ranks

USER = Frame("<module>", "/code/train.py", 7)
BARRIER = (Frame("barrier", "/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 1), USER)
KERAS = (Frame("quick_execute", "/lib/python3.11/site-packages/tensorflow/python/eager/execute.py", 53), USER)

SHELL = (Frame("pip", "", 0),)
"""Of a rank that has not started Python, and has no frames."""


@pytest.mark.parametrize(
    ("frames", "share", "expected"),
    [
        ((BARRIER, SHELL), 0.0, 10),
        ((BARRIER, SHELL), 1.0, 10 * stall.BUSY),
        ((BARRIER, (USER,)), 0.0, 10),
        ((BARRIER, (USER,)), 1.0, 10 * stall.BUSY),
        ((KERAS, (USER,)), 1.0, 10 * stall.BUSY),
        ((KERAS, KERAS), 0.0, 10),
        ((KERAS, KERAS), 1.0, None),
        ((BARRIER, BARRIER), 1.0, 10),
        ((BARRIER, ()), 1.0, 10),
    ],
    ids=[
        "a marker file",
        "installs packages",
        "asleep",
        "evaluates",
        "evaluates without torch",
        "all wait",
        "all compute",
        "wait with the processor",
        "exits",
    ],
)
def test_the_time_for_which_ranks_may_wait(
    monkeypatch: pytest.MonkeyPatch, frames: tuple[tuple[Frame, ...], ...], share: float, expected: float | None
) -> None:
    now = 100.0
    ranks = make_ranks(2, 1)
    for rank in ranks:
        rank.status = Status.RUNNING
    stacks = [Stack(rank, each, pid=rank + 1) for rank, each in enumerate(frames)]
    in_shells = [replace(stack, frames=(), command="it runs `pip`") for stack in stacks if stack.frames == SHELL]
    monkeypatch.setattr(stack_dumps, "rank_stacks", lambda *_: [each for each in stacks if each.frames != SHELL])
    monkeypatch.setattr(stack_dumps, "shell_stacks", lambda _: in_shells)
    monkeypatch.setattr(stack_dumps, "activity", lambda _: {1: (0.0, 0), 2: (share * now, 0)})

    async def first_stall() -> float | None:
        nonlocal now
        watch = StallWatch(StepRecord("train", "train", "train", "pytorch", 2, 1, ranks=ranks), {}, 10.0)
        while now < 100 + 10 * 2 * stall.BUSY:
            if watch.stalled(now):
                return now - 100
            if watch._looking is not None:
                await asyncio.wait([watch._looking])
            now += 1.0
        return None

    found = asyncio.run(first_stall())
    assert found is None if expected is None else expected <= (found or 0) <= expected + 10


def test_a_rank_that_has_raised_may_take_its_time_to_exit_or_start_another_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "std_log_process_0.txt"
    log.write_text(
        f'Traceback (most recent call last):\n  File "{USER.file}", line 7, in main\nValueError: bad shard\n'
    )
    rank = replace(make_ranks(1, 1)[0], log=str(log), status=Status.RUNNING)
    stacks: list[Stack] = []
    monkeypatch.setattr(stack_dumps, "rank_stacks", lambda *_: stacks)
    monkeypatch.setattr(stack_dumps, "program", lambda: "py-spy")
    watch = StallWatch(StepRecord("train", "train", "train", "pytorch", 1, 1, ranks=[rank]), {}, 10.0)

    def exiting(now: float, *found: Stack) -> list[int]:
        stacks[:] = found
        return asyncio.run(watch.exiting(now))

    exits, busy = Stack(0, ()), Stack(0, (USER,))
    assert exiting(100.0, exits) == []
    assert exiting(102.0, exits) == []
    assert exiting(103.0) == []  # another program, which is not Python
    assert exiting(106.0, busy) == []
    assert exiting(111.0, exits) == []
    assert exiting(112.0, exits) == [0]


def test_what_a_rank_uses_includes_its_children(tmp_path: Path) -> None:
    log = tmp_path / "std_log_process_0.txt"
    with log.open("w") as file:
        rank = bounded.Popen(
            ["sh", "-c", "(exec head -c 3000000 >/dev/null); :"],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
    with rank:
        rank.stdin.write(bytes(2_000_000))
        rank.stdin.flush()
        ((_, count),) = stack_dumps.activity([replace(make_ranks(1, 1)[0], log=str(log))]).values()
    assert count > 1_000_000


@pytest.mark.parametrize(("distribution", "expected"), [("pytorch", [0, 1]), ("ray", [0])])
def test_of_the_nodes_of_ray_only_the_head_runs_a_program(
    monkeypatch: pytest.MonkeyPatch, distribution: str, expected: list[int]
) -> None:
    ranks = make_ranks(2, 1)
    for rank in ranks:
        rank.status = Status.RUNNING
    monkeypatch.setattr(stack_dumps, "rank_stacks", lambda *_: [])
    monkeypatch.setattr(stack_dumps, "shell_stacks", lambda ranks: [Stack(rank.rank, ()) for rank in ranks])
    watch = StallWatch(StepRecord("train", "train", "train", distribution, 2, 1, ranks=ranks), {}, 10.0)
    assert [stack.rank for stack in asyncio.run(watch.stacks())] == expected
