"""train_tensorflow, with workers and with parameter servers: trainings as real processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import COMPONENTS

from tensorflow_tasks import cluster, finish, needs_tensorflow, start

Importer = Callable[[str, str], Any]
Tasks = dict[str, subprocess.Popen[bytes]]

CODE = COMPONENTS / "train_tensorflow"


def begin(script: str, data: Path, folder: Path, tasks: dict[str, list[str]], *arguments: object) -> Tasks:
    names = [f"{role}-{index}" for role, endpoints in tasks.items() for index in range(len(endpoints))]
    options = ("--data", data, "--model", folder / "model", *arguments)
    path = (COMPONENTS / "prepare_images",)
    return {name: start(folder, name, tasks, CODE / script, *options, path=path) for name in names or ["worker-0"]}


@pytest.mark.parametrize(("length", "batch_size", "parts"), [(10, 4, 1), (10, 4, 3), (3, 8, 4)])
def test_every_image_is_in_one_part_of_one_step_of_an_epoch(
    code: Importer, length: int, batch_size: int, parts: int
) -> None:
    batches = code("train_tensorflow", "batches")
    plan = batches.steps(length, batch_size=batch_size, epochs=2, seed=5)
    for epoch in range(2):
        shares = [
            batches.share(indices, part, parts) for number, indices in plan if number == epoch for part in range(parts)
        ]
        assert all(len(indices) == len(weights) > 0 for indices, weights in shares)
        seen = [indices[weights == 1] for indices, weights in shares]
        assert sorted(np.concatenate(seen).tolist()) == list(range(length))
    assert plan[0][1].tolist() != plan[len(plan) // 2][1].tolist()


@needs_tensorflow
@pytest.mark.slow
def test_two_workers_have_the_losses_of_one_process(digits: Path, tmp_path: Path) -> None:
    settings = ("--epochs", 1, "--batch_size", 37)  # one worker has an image more, and in the last step none
    alone = begin("train.py", digits, tmp_path / "one", {}, *settings)
    workers = begin("train.py", digits, tmp_path / "two", cluster(worker=2), *settings)
    one, two = finish(tmp_path / "one", alone)["worker-0"], finish(tmp_path / "two", workers)
    assert [one.code, *(task.code for task in two.values())] == [0, 0, 0], (one, two)
    expected, found = one.losses(), two["worker-0"].losses()
    assert len(expected) == len(found) == 4
    assert expected[-1] < expected[0] / 2, "this training learns nothing: it would prove nothing"
    assert max(abs(a - b) / a for a, b in zip(expected, found, strict=True)) < 1e-3
    assert (tmp_path / "two/model/model.keras").is_file()
    assert json.loads((tmp_path / "two/model/classifier.json").read_text())["classes"] == list("0123456789")


@needs_tensorflow
@pytest.mark.slow
def test_parameter_servers_train_and_end_with_the_chief(digits: Path, tmp_path: Path) -> None:
    tasks = begin("train_parameter_server.py", digits, tmp_path, cluster(worker=2, ps=1), "--epochs", 2)
    ended = finish(tmp_path, tasks)
    assert {name: task.code for name, task in ended.items()} == {"worker-0": 0, "worker-1": 0, "ps-0": 0}, ended
    losses = ended["worker-0"].losses()
    assert losses[-1] < losses[0] / 2
    assert json.loads((tmp_path / "model/classifier.json").read_text())["validation_accuracy"] > 0.7
