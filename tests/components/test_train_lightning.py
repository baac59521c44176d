"""train_lightning as real processes, as it is bound. Lightning under each of its launches, and on several instances, is
tried in tests/docs/test_stacks.py."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from component_processes import COMPONENTS, Ended
from launches import by_platform, environment

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError

Importer = Callable[[str, str], Any]

SCRIPT = COMPONENTS / "train_lightning/train.py"
CODE = ("train_lightning", "train_image_classifier", "prepare_images")
VARIABLES = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "NODE_RANK": "1", "AZUREML_NODE_COUNT": "2"}


def command(data: Path, folder: Path, *arguments: str) -> list[str]:
    places = ["--data", str(data), "--model", str(folder / "model"), "--checkpoints", str(folder / "checkpoints")]
    return [str(SCRIPT), *places, "--network", "mlp", "--epochs", "1", "--batch_size", "64", *arguments]


def losses(folder: Path) -> list[float]:
    events = report.read(folder / "report")[0]
    return [
        event.metrics["train_loss"]
        for event in events
        if isinstance(event, report.Progress) and "train_loss" in event.metrics
    ]


def check(ended: Ended, folder: Path) -> None:
    assert set(ended.codes) == {0}, ended
    assert "2 ranks on 1 instance: validation accuracy" in ended.output
    assert (folder / "model/classifier.pt").is_file()
    assert (folder / "checkpoints/last.ckpt").is_file()
    found = losses(folder)
    assert found[-1] < found[0], "this training learns nothing"


@pytest.mark.slow
def test_one_process_an_instance_starts_the_others(digits: Path, tmp_path: Path) -> None:
    started = [sys.executable, *command(digits, tmp_path, "--devices", "2")]
    check(by_platform(PyTorch(1), 1, started, tmp_path, environment(tmp_path, CODE)), tmp_path)


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
