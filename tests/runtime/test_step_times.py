"""The pace of a training: its points, its file, and the machines that it was measured on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.contract.pytorch import PyTorch
from allranks.runtime.ranks import step_times
from allranks.runtime.ranks.machines import RankResources, unique_machines
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.ranks.step_times import EVERY, StepTimes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass; no others do."""
    now = [100.0]

    class Time:
        perf_counter = staticmethod(lambda: now[0])
        time = staticmethod(lambda: 1000.0 + now[0])

    monkeypatch.setattr(step_times, "time", Time)

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def written(times: StepTimes, folder: Path, **about: Any) -> Any:
    times.write(folder / "new" / "history", **about)
    return json.loads((folder / "new" / "history").read_text())


def batches(count: int, size: int = 4, before: Callable[[], None] = lambda: None) -> Iterator[list[int]]:
    for _ in range(count):
        before()
        yield [0] * size


def test_points_have_the_time_and_the_samples_of_their_steps(
    alone: Ranks, tmp_path: Path, clock: Callable[[float], None]
) -> None:
    times = StepTimes(alone, sample="image")
    for _ in times.track(batches(EVERY)):
        clock(3)
    for _ in times.track(batches(EVERY, size=8, before=lambda: clock(1))):  # waiting for data is part of a step
        clock(1)
    found = written(times, tmp_path, strategy="ddp")
    assert found["points"] == [
        {"step": EVERY, "seconds": 3, "samples": 4},
        {"step": 2 * EVERY, "seconds": 2, "samples": 8},
    ]
    assert (found["sample"], found["strategy"]) == ("image", "ddp")
    assert found["ended"] - found["started"] == 5 * EVERY


def test_what_lies_between_the_epochs_does_not_count(
    alone: Ranks, tmp_path: Path, clock: Callable[[float], None]
) -> None:
    times = StepTimes(alone)
    for _ in range(2):
        for _ in times.track(batches(EVERY - 3)):
            clock(1)
        clock(1000)
    points = written(times, tmp_path)["points"]
    assert [point["step"] for point in points] == [EVERY, 2 * EVERY - 6]
    assert [point["seconds"] for point in points] == [1, 1]


def test_a_loop_that_is_left_early_has_made_its_last_step(
    alone: Ranks, tmp_path: Path, clock: Callable[[float], None]
) -> None:
    times = StepTimes(alone)
    for number, _ in enumerate(times.track(batches(100)), start=1):
        clock(2)
        if number == 4:
            break
    assert written(times, tmp_path)["points"] == [{"step": 4, "seconds": 2, "samples": 4}]


def test_a_gpu_is_waited_for_only_when_its_times_are_read(
    alone: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a GPU that computes a step in 2 s, and is always some steps behind."""
    calls: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: object) -> None:
            self.at = 1000 * 2 * len(done)
            calls.append("record")

        def synchronize(self) -> None:
            calls.append("wait")

        def elapsed_time(self, end: Event) -> float:
            return float(end.at - self.at)

    done: list[int] = []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    times = StepTimes(alone)
    monkeypatch.setattr(times, "_device", torch.device("cuda", 0))
    for _ in times.track(batches(3 * EVERY)):
        done.append(1)
    assert "wait" not in calls
    points = written(times, tmp_path)["points"]
    assert [point["seconds"] for point in points] == [2, 2, 2]


@pytest.mark.parametrize(
    ("batch", "count"),
    [
        ([7, 8, 9], 3),
        (torch.zeros(5, 2), 5),
        ([torch.zeros(4, 2), torch.zeros(4)], 4),
        ((torch.zeros(4, 2), torch.zeros(4)), 4),
        ({"input_ids": torch.zeros(6, 2), "labels": torch.zeros(6)}, 6),
        (["a text", "another", "and one"], 3),
        ([], 0),
    ],
    ids=["indices", "tensor", "list", "tuple", "mapping", "texts", "nothing"],
)
def test_what_a_batch_holds(alone: Ranks, tmp_path: Path, batch: Any, count: int) -> None:
    times = StepTimes(alone)
    assert len(list(times.track([batch]))) == 1
    assert written(times, tmp_path)["points"][0]["samples"] == count


def test_a_batch_may_be_counted_otherwise(alone: Ranks, tmp_path: Path) -> None:
    times = StepTimes(alone)
    assert list(times.track(["ab cd"], samples=lambda text: len(text.split()))) == ["ab cd"]
    assert written(times, tmp_path)["points"][0]["samples"] == 2


def test_the_file_says_where_it_was_measured(alone: Ranks, tmp_path: Path) -> None:
    found = written(StepTimes(alone), tmp_path)
    assert (found["world_size"], found["instance_count"], found["device"]) == (1, 1, "cpu")
    (machine,) = found["machines"]
    assert (machine["cores"], machine["gpus"]) == (len(os.sched_getaffinity(0)), 0)
    assert machine["name"]
    assert found["points"] == []


@pytest.mark.slow
def test_instances_of_one_machine_are_told_as_one_with_the_samples_of_all_ranks(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    ended = start("unequal_steps.py", tmp_path / "history", distribution=PyTorch(1), instance_count=2).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    found = json.loads((tmp_path / "history").read_text())
    assert [(point["step"], point["samples"]) for point in found["points"]] == [(10, 3), (12, 3)]
    assert all(point["seconds"] > 0 for point in found["points"])
    assert (found["instance_count"], found["world_size"], found["sample"]) == (2, 2, "word")
    assert [machine["cores"] for machine in found["machines"]] == [len(os.sched_getaffinity(0))]


@pytest.mark.parametrize(
    ("seats", "expected"),
    [
        ([("a", {0, 1}, None)], [("a", 2, 0)]),
        ([("a", {0, 1}, None), ("a", {1, 2}, None)], [("a", 3, 0)]),
        ([("b", {0}, "x"), ("a", {0}, "x"), ("b", {0}, "y"), ("a", {0}, "x")], [("b", 1, 2), ("a", 1, 1)]),
    ],
    ids=["one rank", "own cores", "two machines"],
)
def test_machines(seats: list[tuple[str, set[int], str | None]], expected: list[tuple[str, int, int]]) -> None:
    found = unique_machines([RankResources(name, frozenset(cores), gpu) for name, cores, gpu in seats])
    assert [tuple(machine.values()) for machine in found] == expected
