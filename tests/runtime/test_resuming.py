"""Trainings that go on with another number of ranks, and then with another: 4, 2, 3.

In between, the checkpoint of the four ranks is turned into the single file that earlier versions wrote.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from allranks.contract.pytorch import PyTorch
from allranks.runtime import saved_tensors
from allranks.runtime.checkpoints import folder as folders
from allranks.runtime.checkpoints import reading

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("resuming")]

NAMES = ["ddp", "fsdp", *(["zero1", "zero3"] if find_spec("deepspeed") else [])]
RANKS = {4: 5, 2: 9, 3: 14}
"""Numbers of ranks, and the step up to which they train."""


@pytest.fixture(scope="module")
def curves(
    start_module: Callable, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The losses of an ordinary loop, and of each strategy's training."""
    folder = tmp_path_factory.mktemp("checkpoints")
    found: dict[str, dict[str, float]] = {name: {} for name in NAMES}
    for count, last in RANKS.items():
        ended = start_module("resume.py", folder, last, *NAMES, distribution=PyTorch(count)).wait()
        assert [rank.code for rank in ended] == [0] * count, ended
        curves = json.loads(ended[0].stdout.splitlines()[-1])
        for name in NAMES:
            if count == 4:
                make_single_file(folder / name)
            assert not found[name].keys() & curves[name].keys(), "it began anew"
            found[name] |= curves[name]
    return curves["ordinary"], found


def make_single_file(folder: Path) -> None:
    newest, *older = folders.complete(folder)
    saved = reading.open_checkpoint(newest)
    content = {
        "step": saved.step,
        "world_size": saved.world_size,
        "parts": saved_tensors.full(saved.parts),
        "random_states": [saved.random_states(rank) for rank in range(saved.world_size)],
    }
    torch.save(content, folder / f"step_{saved.step:09d}.pt")
    for entry in (newest, *older):
        shutil.rmtree(entry.path)


@pytest.mark.parametrize("name", NAMES)
def test_the_curve_is_that_of_an_untouched_training(
    curves: tuple[dict[str, float], dict[str, dict[str, float]]], name: str
) -> None:
    expected, found = curves
    assert found[name] == pytest.approx(expected, rel=1e-4)
