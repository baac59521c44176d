from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime.checkpoints import Checkpoints
from allranks.runtime.eviction import EVICTED, Evicted
from allranks.runtime.ranks import Ranks

# Each starts trainings or imports the SDK in processes of its own: seconds apiece.
pytestmark = pytest.mark.slow


def steps(stdout: str) -> dict[int, str]:
    """Each step's loss, to the last bit."""
    return {int(step): loss for step, loss in (line.split() for line in stdout.splitlines())}


class Counter:
    """The smallest thing that has a state."""

    def __init__(self, value: Any = 0) -> None:
        self.value = value

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_saved_yet(alone: Ranks, tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "new", alone, {}).load() == 0


def test_saves_when_due_and_keeps_the_last(alone: Ranks, tmp_path: Path) -> None:
    counter = Counter()
    checkpoints = Checkpoints(tmp_path / "c", alone, {"counter": counter}, every_steps=3, keep=2)
    for step in range(1, 12):
        counter.value = step * 10
        checkpoints.save_if_due(step)
    assert names(tmp_path / "c") == ["step_000000006.pt", "step_000000009.pt"]
    resumed = Counter()
    assert Checkpoints(tmp_path / "c", alone, {"counter": resumed}).load() == 9
    assert resumed.value == 90


def test_saves_when_its_time_has_come(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {}, every_minutes=1e-9)
    checkpoints.save_if_due(1)
    assert names(tmp_path) == ["step_000000001.pt"]


def test_the_training_goes_on_with_its_random_numbers(alone: Ranks, tmp_path: Path) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(numpy.random.rand()), float(torch.rand(1))

    Checkpoints(tmp_path, alone, {}).save(1)
    expected = draw()
    assert draw() != expected
    Checkpoints(tmp_path, alone, {}).load()
    assert draw() == expected


def test_the_file_is_the_plain_models(alone: Ranks, tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    training = alone.strategy.prepare(model, torch.optim.SGD(model.parameters()))
    Checkpoints(tmp_path, alone, {"training": training}).save(1)
    kept = torch.load(tmp_path / "step_000000001.pt")["parts"]["training"]["model"]
    assert list(kept) == list(training.weights()) == ["weight", "bias"]
    assert torch.equal(model.weight, kept["weight"])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_torn_file_is_passed_over(
    alone: Ranks, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = Counter(torch.arange(1000))
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter})
    checkpoints.save(1)
    checkpoints.save(2)
    torn = tmp_path / "step_000000002.pt"
    data = bytearray(torn.read_bytes())
    if damage == "flipped":
        data[data.index(torch.arange(500, 510).numpy().tobytes())] ^= 0xFF
    torn.write_bytes({"cut": data[: len(data) // 2], "flipped": data, "empty": b""}[damage])
    assert Checkpoints(tmp_path, alone, {"counter": counter}).load() == 1
    assert f"{torn} is incomplete: skipped" in capsys.readouterr().err


@pytest.mark.parametrize(
    "value",
    [
        (value for value in ()),  # cannot be written
        Path(),  # could be written, but never loaded
    ],
    ids=["generator", "path"],
)
def test_a_failed_write_leaves_what_was_there(alone: Ranks, tmp_path: Path, value: object) -> None:
    counter = Counter(1)
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter})
    checkpoints.save(1)
    counter.value = value
    with pytest.raises(TypeError):
        checkpoints.save(2)
    assert names(tmp_path) == ["step_000000001.pt"]


def test_what_a_killed_writer_left_is_removed(alone: Ranks, tmp_path: Path) -> None:
    (tmp_path / "step_000000007.tmp").write_bytes(b"half")
    assert Checkpoints(tmp_path, alone, {}).load() == 0
    assert names(tmp_path) == []


def test_begins_with_another_trainings_checkpoint(alone: Ranks, tmp_path: Path) -> None:
    Checkpoints(tmp_path / "first", alone, {"counter": Counter(5)}).save(4)
    counter = Counter()
    second = Checkpoints(tmp_path / "second", alone, {"counter": counter})
    assert second.load(start_from=tmp_path / "first") == 4
    counter.value = 6
    second.save(5)
    assert Checkpoints(tmp_path / "second", alone, {"counter": counter}).load(start_from=tmp_path / "first") == 5


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"other": Counter()}, "the parts model"),
        ({"model": torch.nn.Linear(3, 3)}, "size mismatch"),
        ({"model": torch.nn.Sequential(torch.nn.Linear(2, 2))}, "Missing key"),
    ],
)
def test_a_checkpoint_that_does_not_fit(alone: Ranks, tmp_path: Path, parts: dict[str, Any], message: str) -> None:
    Checkpoints(tmp_path, alone, {"model": torch.nn.Linear(2, 2)}).save(1)
    with pytest.raises(InputError, match=message):
        Checkpoints(tmp_path, alone, parts).load()


@pytest.mark.parametrize("options", [{"every_steps": 0}, {"every_minutes": -1.0}, {"keep": 0}])
def test_wrong_options(alone: Ranks, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Checkpoints(tmp_path, alone, {}, **options)


def test_sigterm_saves_and_ends(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {})
    checkpoints.save_if_due(1)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Evicted):
        checkpoints.save_if_due(2)
    assert names(tmp_path) == ["step_000000002.pt"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "a second SIGTERM ends at once"


def test_evicted_and_resumed_is_as_if_never_interrupted(start: Callable, tmp_path: Path) -> None:
    """One rank of two is asked to end in the middle of an epoch. Dropout draws other numbers on each rank."""
    arguments = ["--steps", 20, "--dropout", 0.3, "--batch-size", 62]
    whole = start("train_digits.py", *arguments, distribution=PyTorch(2))
    resumable = [*arguments, "--checkpoints", tmp_path / "checkpoints"]
    evicted = start("train_digits.py", *resumable, "--sigterm-at", 11, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in evicted] == [EVICTED, EVICTED], evicted
    (saved,) = names(tmp_path / "checkpoints")
    step = int(saved.removeprefix("step_").removesuffix(".pt"))
    assert step in (11, 12), "the other rank may have begun the next step"
    assert any(f"saved a checkpoint at step {step}" in note.text for note in evicted[0].of(report.Note))
    assert not any(rank.of(report.Failure) for rank in evicted)

    resumed = start("train_digits.py", *resumable, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in resumed] == [0, 0], resumed
    assert steps(evicted[0].stdout) | steps(resumed[0].stdout) == steps(whole.wait()[0].stdout)
    assert min(steps(resumed[0].stdout)) == step + 1


def test_resumed_by_another_number_of_ranks(start: Callable, tmp_path: Path) -> None:
    whole = start("train_digits.py", "--steps", 30)
    arguments = ["--checkpoints", tmp_path / "checkpoints", "--every-steps", 11]
    saved = start("train_digits.py", *arguments, "--steps", 11, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in saved] == [0, 0], saved
    (resumed,) = start("train_digits.py", *arguments, "--steps", 30).wait()
    expected, found = steps(whole.wait()[0].stdout), steps(resumed.stdout)
    assert list(found) == list(range(12, 31))
    for step, loss in found.items():
        assert float.fromhex(loss) == pytest.approx(float.fromhex(expected[step]), rel=1e-4)
