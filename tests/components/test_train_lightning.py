"""train_lightning as real processes, as it is bound. Lightning under each of its launches, and on several instances, is
tried in tests/docs/test_stacks.py."""

import json
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import COMPONENTS, run_script, running_script
from launches import by_platform, environment

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime import arguments

pytestmark = pytest.mark.slow  # Lightning takes seconds to import

Importer = Callable[[str, str], Any]

SCRIPT = COMPONENTS / "image_classification/train_lightning/train.py"
VARIABLES = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "NODE_RANK": "1", "AZUREML_NODE_COUNT": "2"}
SETTINGS = ("--preset", "resnet_micro", "--num_train_epochs", "1", "--learning_rate", "0.01", "--max_grad_norm", "1")


def words(data: Path, folder: Path, *arguments: str) -> list[str]:
    places = ["--data", str(data), "--model", str(folder / "model"), "--checkpoints", str(folder / "checkpoints")]
    return [*places, "--history", str(folder / "history.json"), *SETTINGS, *arguments]


def points(folder: Path) -> dict[int, float]:
    """Return the loss at each step of the history."""
    content = json.loads((folder / "history.json").read_text())
    return {point["step"]: point["loss"] for point in content["points"]}


@pytest.fixture(scope="module")
def per_node(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the outputs of a training that Lightning has started the second process of."""
    folder = tmp_path_factory.mktemp("per_node")
    command = [str(SCRIPT), *words(digits, folder, "--devices", "2", "--logging_steps", "1", "--save_steps", "50")]
    ended = by_platform(PyTorch(1), 1, [sys.executable, *command], folder, environment(folder, ()))
    assert set(ended.codes) == {0}, ended
    assert "2 ranks on 1 instance: validation accuracy" in ended.output
    return folder


@pytest.mark.slow
def test_one_process_an_instance_starts_the_others(digits: Path, per_node: Path) -> None:
    losses = list(points(per_node).values())
    assert len(losses) == len(np.load(digits / "train_labels.npy")) // 64
    assert losses[-1] < 0.7 * losses[0], "this training learns nothing"
    assert {file.name for file in (per_node / "checkpoints").iterdir()} == {"last.ckpt"}
    events = report.read(per_node / "report")[0]
    found = [event.metrics for event in events if isinstance(event, report.Progress)]
    assert {name for metrics in found for name in metrics} >= {"train_loss", "learning_rate", "validation_accuracy"}


@pytest.mark.recipe
def test_an_evicted_training_goes_on_within_its_epoch(digits: Path, per_node: Path, tmp_path: Path) -> None:
    """SIGTERM to one of the processes of a per-process launch: both save, and end at one step, that logs nothing."""
    options = words(digits, tmp_path, "--save_steps", "2", "--logging_steps")
    run = {"script": SCRIPT, "folder": tmp_path, "ranks": 2}
    with running_script("train_lightning", *options, "1000", **run) as job:
        while not list((tmp_path / "checkpoints").glob("step=4*")):
            assert all(process.poll() is None for process in job.processes), job.errors()
            time.sleep(0.05)
        job.processes[1].send_signal(signal.SIGTERM)
        assert [process.wait(100) for process in job.processes] == [143, 143], job.errors()
    assert not (tmp_path / "model").exists()
    saved = steps_of(tmp_path / "checkpoints/last.ckpt")
    expected = points(per_node)
    assert 4 <= saved < len(expected)
    resumed = run_script("train_lightning", *options, "1", **run)
    assert resumed.codes == [0, 0], resumed.errors
    # The same images in the same steps: the losses of a training that was not interrupted.
    assert points(tmp_path) == {step: pytest.approx(expected[step], rel=0.02) for step in expected if step > saved}


@pytest.mark.recipe
def test_the_last_step_within_an_epoch_is_validated_and_saved(digits: Path, tmp_path: Path) -> None:
    options = words(digits, tmp_path, "--max_steps", "7", "--save_steps", "4")
    run = {"script": SCRIPT, "folder": tmp_path}
    ended = run_script("train_lightning", *options, **run)
    assert ended.codes == [0], ended.errors
    assert "1 ranks on 1 instance: validation accuracy" in ended.output
    assert steps_of(tmp_path / "checkpoints/last.ckpt") == 7
    # An attempt that was evicted while it wrote the model: no step is left, and the metric is the same.
    again = run_script("train_lightning", *options, **run)
    assert again.codes == [0], again.errors
    assert again.output.splitlines()[-1] == ended.output.splitlines()[-1]


def steps_of(checkpoint: Path) -> int:
    import torch

    return int(torch.load(checkpoint, mmap=True)["global_step"])


def test_a_checkpoint_that_cannot_be_resumed_is_refused_by_name(code: Importer, tmp_path: Path) -> None:
    import torch

    training = code("train_lightning", "train")
    with pytest.raises(InputError, match=r"input resume_from_checkpoint: .* holds no last.ckpt"):
        training.last(tmp_path / "own", tmp_path)
    file = tmp_path / "last.ckpt"
    torch.save({"state_dict": torch.nn.Linear(2, 3).state_dict()}, file)
    assert training.last(tmp_path / "own", tmp_path) == file
    training.check_fits(file, torch.nn.Linear(2, 3))
    with pytest.raises(InputError, match=r"does not fit: bias is \(3,\) in it and \(4,\) in the model"):
        training.check_fits(file, torch.nn.Linear(2, 4))
    file.write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match=r"last.ckpt cannot be read"):
        training.check_fits(file, torch.nn.Linear(2, 3))


def test_a_full_disk_is_refused_before_the_first_step(code: Importer, tmp_path: Path) -> None:
    from types import SimpleNamespace

    import torch

    room = code("train_lightning", "room")
    asked: list[Any] = []
    trainer = SimpleNamespace(
        is_global_zero=True, strategy=SimpleNamespace(broadcast=lambda value: asked.append(value) or value)
    )
    args = Namespace(model=tmp_path / "model", checkpoints=tmp_path / "checkpoints", save_total_limit=2)
    room.RoomCheck(args).on_fit_start(trainer, torch.nn.Linear(2, 3))
    large = torch.nn.Linear(2**24, 2**24, device="meta")  # 1 PiB of weights
    with pytest.raises(InputError, match=r"output checkpoints: .* free in") as error:
        room.RoomCheck(args).on_fit_start(trainer, large)
    assert "4 of 3072.0 TiB at a time" in str(error.value)  # two to keep, the last one, and the next one
    assert len(asked) == 2, "rank 0 decides for all"


@pytest.mark.parametrize(
    ("strategy", "precision", "said"),
    [("fsdp", "bfloat16", "input strategy: fsdp on CPUs"), ("ddp", "float16", "input precision: float16 on CPUs")],
)
def test_what_lightning_supports_only_on_gpus_is_refused_on_cpus(
    code: Importer, strategy: str, precision: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        code("train_lightning", "checks").check_device(Namespace(strategy=strategy, precision=precision), on_gpu=False)


def test_steps_follow_from_the_ranks_and_must_be_full(code: Importer, tmp_path: Path) -> None:
    steps = code("train_lightning", "checks").steps
    args = arguments(
        SCRIPT.parent / "component.yaml",
        words(tmp_path, tmp_path, "--gradient_accumulation_steps", "4", "--num_train_epochs", "2"),
    )
    assert steps(args, 1000, 2) == (4, 8)
    with pytest.raises(InputError, match="input per_device_train_batch_size"):
        steps(args, 100, 2)


@pytest.mark.parametrize(
    ("environ", "devices", "num_nodes", "said"),
    [
        (VARIABLES, 2, 1, "num_nodes: 1 on a launch of 2 instances"),
        ({}, None, 2, "num_nodes: 2 on a launch of 1 instance\n"),
        ({**VARIABLES, "WORLD_SIZE": "4", "RANK": "2"}, 3, None, "devices: 3, while pytorch started 2"),
    ],
)
def test_what_would_hang_is_refused(
    code: Importer, environ: dict[str, str], devices: int | None, num_nodes: int | None, said: str
) -> None:
    with pytest.raises(InputError) as error:
        code("train_lightning", "place").find(devices, num_nodes, environ)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("environ", "devices", "expected"),
    [
        ({}, None, (1, 1, False)),
        ({}, 2, (1, 2, True)),
        (VARIABLES, 2, (2, 2, True)),
        (VARIABLES, 1, (2, 1, False)),
        ({**VARIABLES, "WORLD_SIZE": "4", "RANK": "2"}, None, (2, 2, False)),
        # What Lightning itself has started, and its own variables with it.
        ({"ALLRANKS_LIGHTNING_INSTANCES": "2", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}, 2, (2, 2, True)),
    ],
)
def test_the_processes_that_there_will_be(
    code: Importer, environ: dict[str, str], devices: int | None, expected: tuple[int, int, bool]
) -> None:
    place = code("train_lightning", "place")
    assert place.find(devices, None, environ) == place.Place(*expected)
