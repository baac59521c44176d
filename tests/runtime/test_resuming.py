"""Trainings that go on with another number of ranks, and then with another: 4, 2, 3."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from allranks.contract.pytorch import PyTorch

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
            assert not found[name].keys() & curves[name].keys(), "it began anew"
            found[name] |= curves[name]
    return curves["ordinary"], found


@pytest.mark.parametrize("name", NAMES)
def test_the_curve_is_that_of_an_untouched_training(
    curves: tuple[dict[str, float], dict[str, dict[str, float]]], name: str
) -> None:
    expected, found = curves
    assert found[name] == pytest.approx(expected, rel=1e-4)
