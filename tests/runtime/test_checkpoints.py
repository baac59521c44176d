import json
import os
import pickle
import random
import shutil
import signal
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime.checkpoints import manifest
from allranks.runtime.checkpoints.checkpoints import Checkpoints
from allranks.runtime.clean_exit import EVICTED, Evicted
from allranks.runtime.ranks.ranks import Ranks

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


def same(found: Any, expected: Any) -> bool:
    """Whether two states have the same types, tensors and values."""
    if type(found) is not type(expected):
        return False
    if isinstance(expected, torch.Tensor):
        return found.dtype == expected.dtype and torch.equal(found.to_dense(), expected.to_dense())
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


def file_of(checkpoint: Path) -> Path:
    """The one rank's file of tensors."""
    (file,) = checkpoint.glob("*.distcp")
    return file


def test_nothing_saved_yet(alone: Ranks, tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "new", alone, {}).load() == 0


@pytest.mark.parametrize("asynchronous", [True, False])
def test_saves_when_due_and_keeps_the_last(alone: Ranks, tmp_path: Path, asynchronous: bool) -> None:
    counter = Counter()
    checkpoints = Checkpoints(
        tmp_path / "c", alone, {"counter": counter}, every_steps=3, keep=2, asynchronous=asynchronous
    )
    for step in range(1, 12):
        counter.value = step * 10
        checkpoints.save_if_due(step)
    checkpoints.close()
    assert names(tmp_path / "c") == ["step_000000006", "step_000000009"]
    resumed = Counter()
    assert Checkpoints(tmp_path / "c", alone, {"counter": resumed}).load() == 9
    assert resumed.value == 90


def test_the_next_steps_do_not_change_a_save_in_progress(alone: Ranks, tmp_path: Path) -> None:
    counter = Counter(torch.zeros(1 << 20))
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter}, every_steps=1, keep=9)
    for step in range(1, 4):
        counter.value.fill_(step)
        checkpoints.save_if_due(step)
        counter.value.fill_(-1)
    checkpoints.close()
    for step in (3, 2, 1):
        assert Checkpoints(tmp_path, alone, {"counter": counter}).load() == step
        assert torch.equal(counter.value, torch.full((1 << 20,), float(step)))
        shutil.rmtree(tmp_path / f"step_{step:09d}")


def test_a_metric_that_comes_after_the_save_is_added(alone: Ranks, tmp_path: Path) -> None:
    counter = Counter()
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter}, every_steps=1, keep=1)
    for step, loss in {1: 0.9, 2: 0.3, 3: 0.5}.items():
        counter.value = step
        checkpoints.save_if_due(step)
        checkpoints.save(step, metric=loss)
    assert names(tmp_path) == ["step_000000002", "step_000000003"]
    resumed = Checkpoints(tmp_path, alone, {"counter": counter})
    assert (resumed.metric, resumed.load(best=True), resumed.metric, counter.value) == (None, 2, 0.3, 2)


def test_a_save_in_the_background_gets_its_metric_too(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {})
    checkpoints.save(1, metric=0.5, wait=False)
    assert checkpoints.metric == 0.5
    checkpoints.save(2, wait=False)
    assert checkpoints.metric is None
    checkpoints.close()
    assert names(tmp_path) == ["step_000000001", "step_000000002"]


def test_the_first_step_and_one_of_another_folder_are_saved(alone: Ranks, tmp_path: Path) -> None:
    Checkpoints(tmp_path / "first", alone, {"counter": Counter(7)}).save(0)
    assert names(tmp_path / "first") == ["step_000000000"]
    counter = Counter()
    checkpoints = Checkpoints(tmp_path / "second", alone, {"counter": counter})
    assert checkpoints.load(start_from=tmp_path / "first") == 0
    assert counter.value == 7
    checkpoints.save(0)
    assert names(tmp_path / "second") == ["step_000000000"]


def test_the_best_is_kept_besides_the_newest(alone: Ranks, tmp_path: Path) -> None:
    counter = Counter()
    losses = {1: 0.9, 2: 0.3, 3: 0.5, 4: float("nan"), 5: 0.4}
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter}, every_steps=1, keep=1)
    for step, loss in losses.items():
        counter.value = step
        checkpoints.save_if_due(step, metric=loss)
    checkpoints.save(6)  # without a metric
    assert names(tmp_path) == ["step_000000002", "step_000000006"]
    assert checkpoints.load(best=True) == counter.value == 2
    assert checkpoints.load() == 6


def test_the_best_may_be_the_highest(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {}, every_steps=1, keep=1, mode="max")
    for step, accuracy in enumerate((0.1, 0.8, 0.7), start=1):
        checkpoints.save_if_due(step, metric=accuracy)
    checkpoints.close()
    assert names(tmp_path) == ["step_000000002", "step_000000003"]


def test_saves_when_its_time_has_come(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {}, every_minutes=1e-9)
    checkpoints.save_if_due(1)
    checkpoints.close()
    assert names(tmp_path) == ["step_000000001"]


def test_the_training_goes_on_with_its_random_numbers(alone: Ranks, tmp_path: Path) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(numpy.random.rand()), float(torch.rand(1))

    Checkpoints(tmp_path, alone, {}).save(1)
    expected = draw()
    assert draw() != expected
    Checkpoints(tmp_path, alone, {}).load()
    assert draw() == expected


def test_a_checkpoint_of_the_former_format_is_refused_with_one_message(alone: Ranks, tmp_path: Path) -> None:
    Checkpoints(tmp_path, alone, {}).save(1)
    folder = tmp_path / "step_000000001"
    content = json.loads(json.loads((folder / manifest.MANIFEST).read_text())["content"])
    del content["format"]
    document = {"checksum": zlib.crc32(json.dumps(content).encode()), "content": json.dumps(content)}
    (folder / manifest.MANIFEST).write_text(json.dumps(document))
    with pytest.raises(InputError) as raised:
        Checkpoints(tmp_path, alone, {}).load()
    (problem,) = raised.value.problems
    assert problem.where == f"checkpoint {folder}"
    assert problem.found == "format 1, with which previews of allranks 0.1 saved tensors in safetensors files"
    assert "the version that saved it, or use a folder without" in problem.fix
    assert folder.exists()


class Harmful:
    """An object that a pickle makes by calling a function."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("",)


@pytest.mark.parametrize(
    ("content", "message"),
    [(pickle.dumps(Harmful()), r"it holds posix\.mkdir"), (b"\x80\x04", "Ran out of input"), (b"nonsense", "")],
)
def test_metadata_that_torch_cannot_read_is_one_message_and_executes_no_code(
    alone: Ranks, tmp_path: Path, content: bytes, message: str
) -> None:
    Checkpoints(tmp_path / "saved", alone, {}).save(1)
    folder = tmp_path / "saved/step_000000001"
    (folder / manifest.METADATA).write_bytes(content)
    saved = manifest.read(folder)
    assert saved is not None
    files = {**saved.files, manifest.METADATA: manifest.FileRecord(len(content), (zlib.crc32(content),))}
    manifest.write(folder, replace(saved, files=files))
    with pytest.raises(InputError, match=rf"step_000000001: \.metadata: .*{message}"):
        Checkpoints(tmp_path / "saved", alone, {}).load()


def test_every_kind_of_value_comes_back(alone: Ranks, tmp_path: Path) -> None:
    shared = torch.randn(3, 4)
    value = {
        "dtypes": [torch.ones(3, dtype=dtype) for dtype in (torch.bool, torch.bfloat16, torch.int64, torch.float64)],
        "shapes": (torch.tensor(1.5), torch.empty(0, 3), torch.randn(4, 6).t()),
        "not dense": torch.eye(3).to_sparse(),
        "complex": torch.ones(2, dtype=torch.complex64),
        "tied": {"a": shared, "b": shared},
        0: ["plain", None, 1.5, {"a/b": torch.ones(1)}, {"a": {"b": torch.zeros(1)}}],
        "module": torch.nn.BatchNorm1d(2).state_dict(),
    }
    Checkpoints(tmp_path, alone, {"counter": Counter(value)}).save(1)
    resumed = Counter()
    Checkpoints(tmp_path, alone, {"counter": resumed}).load()
    assert same(resumed.value, value)
    assert resumed.value["module"]._metadata == value["module"]._metadata  # type: ignore[attr-defined]
    entries = file_of(tmp_path / "step_000000001").read_bytes()
    assert entries.count(shared.numpy().tobytes()) == 1, "tied weights are saved once"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "missing", "manifest"])
def test_a_damaged_checkpoint_is_passed_over(
    alone: Ranks, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = Counter(torch.arange(1000))
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter})
    checkpoints.save(1)
    checkpoints.save(2)
    damaged = tmp_path / "step_000000002"
    file = damaged / "manifest.json" if damage == "manifest" else file_of(damaged)
    data = bytearray(file.read_bytes())
    if damage == "flipped":
        data[data.index(torch.arange(500, 510).numpy().tobytes())] ^= 0xFF
    if damage == "manifest":
        data[data.index(b"world_size")] ^= 0x01
    file.unlink()
    if damage != "missing":
        file.write_bytes({"cut": data[: len(data) // 2], "empty": b""}.get(damage, data))
    assert Checkpoints(tmp_path, alone, {"counter": counter}).load() == 1
    assert f"{damaged} is incomplete or damaged: skipped" in capsys.readouterr().err


def test_saves_after_a_damaged_one_are_kept(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {}, keep=1)
    checkpoints.save(5)
    checkpoints.save(9)
    file_of(tmp_path / "step_000000009").write_bytes(b"")
    Checkpoints(tmp_path, alone, {}).save(6)
    assert Checkpoints(tmp_path, alone, {}).load() == 6


@pytest.mark.parametrize(
    "value",
    [
        (value for value in ()),  # cannot be written
        Path(),  # could be written, but never loaded
    ],
    ids=["generator", "path"],
)
def test_a_value_that_could_not_be_loaded_leaves_what_was_there(alone: Ranks, tmp_path: Path, value: object) -> None:
    counter = Counter(1)
    checkpoints = Checkpoints(tmp_path, alone, {"counter": counter})
    checkpoints.save(1)
    counter.value = value
    with pytest.raises(TypeError):
        checkpoints.save(2)
    assert names(tmp_path) == ["step_000000001"]


def test_a_folder_that_cannot_be_written(alone: Ranks, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    checkpoints = Checkpoints(tmp_path / "file", alone, {}, every_steps=1)
    with pytest.raises(InputError, match=r"rank 0: .*Not a directory"):
        checkpoints.save(1)
    with pytest.raises(InputError, match=r"rank 0: .*Not a directory"):
        checkpoints.save_if_due(2)


def test_what_a_killed_process_left_is_removed(
    alone: Ranks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "step_000000008").mkdir()
    (tmp_path / "step_000000008" / "__0_0.distcp").write_bytes(b"half")
    (tmp_path / "other").mkdir()
    assert Checkpoints(tmp_path, alone, {}).load() == 0
    assert names(tmp_path) == ["other"]
    assert "step_000000008 is incomplete" in capsys.readouterr().err


def test_another_attempt_at_a_step_replaces_the_first(alone: Ranks, tmp_path: Path) -> None:
    for value in (1, 2):
        Checkpoints(tmp_path, alone, {"counter": Counter(value)}).save(3)
    file_of(tmp_path / "step_000000003")  # there is one
    counter = Counter()
    assert Checkpoints(tmp_path, alone, {"counter": counter}).load() == 3
    assert counter.value == 2


def test_begins_with_another_trainings_checkpoint(alone: Ranks, tmp_path: Path) -> None:
    Checkpoints(tmp_path / "first", alone, {"counter": Counter(5)}).save(4)
    counter = Counter()
    second = Checkpoints(tmp_path / "second", alone, {"counter": counter})
    assert second.load(start_from=tmp_path / "first") == 4
    counter.value = 6
    second.save(5)
    assert Checkpoints(tmp_path / "second", alone, {"counter": counter}).load(start_from=tmp_path / "first") == 5


def test_a_folder_to_start_from_must_have_a_checkpoint(alone: Ranks, tmp_path: Path) -> None:
    (tmp_path / "first/step_000000004").mkdir(parents=True)  # incomplete
    checkpoints = Checkpoints(tmp_path / "second", alone, {})
    with pytest.raises(InputError, match=f"^input resume: no complete checkpoint in {tmp_path / 'first'}"):
        checkpoints.load(start_from=tmp_path / "first", start_from_name="input resume")
    checkpoints.save(1)
    assert checkpoints.load(start_from=tmp_path / "first") == 1


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


@pytest.mark.parametrize("options", [{"every_steps": 0}, {"every_minutes": -1.0}, {"keep": 0}, {"mode": "best"}])
def test_wrong_options(alone: Ranks, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Checkpoints(tmp_path, alone, {}, **options)


def test_sigterm_saves_and_ends(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {})
    checkpoints.save_if_due(1)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Evicted):
        checkpoints.save_if_due(2)
    assert names(tmp_path) == ["step_000000002"]


def test_sigterm_between_two_steps(alone: Ranks, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, alone, {})
    assert not checkpoints.interrupted()
    os.kill(os.getpid(), signal.SIGTERM)
    assert checkpoints.interrupted()
    assert checkpoints.interrupted()
    assert not list(tmp_path.iterdir())
    with pytest.raises(Evicted):
        checkpoints.save_if_due(1)
    assert names(tmp_path) == ["step_000000001"]


def test_evicted_and_resumed_is_as_if_never_interrupted(start: Callable, tmp_path: Path) -> None:
    """One rank of two is asked to end in the middle of an epoch. Dropout draws other numbers on each rank."""
    arguments = ["--steps", 20, "--dropout", 0.3, "--batch-size", 62]
    whole = start("train_digits.py", *arguments, distribution=PyTorch(2))
    resumable = [*arguments, "--checkpoints", tmp_path / "checkpoints"]
    evicted = start("train_digits.py", *resumable, "--sigterm-at", 11, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in evicted] == [EVICTED, EVICTED], evicted
    (saved,) = names(tmp_path / "checkpoints")
    step = int(saved.removeprefix("step_"))
    assert step in (11, 12), "the other rank may have begun the next step"
    assert any(f"saved a checkpoint at step {step}" in note.text for note in evicted[0].of(report.Note))
    assert not any(rank.of(report.Failure) for rank in evicted)

    resumed = start("train_digits.py", *resumable, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in resumed] == [0, 0], resumed
    assert steps(evicted[0].stdout) | steps(resumed[0].stdout) == steps(whole.wait()[0].stdout)
    assert min(steps(resumed[0].stdout)) == step + 1
