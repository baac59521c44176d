"""Trainings that go on with another number of ranks."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from allranks.contract.pytorch import PyTorch

pytestmark = pytest.mark.slow

NAMES = ["ddp", "fsdp", *(["zero3"] if find_spec("deepspeed") else [])]
RANKS = {2: 3, 3: 6}
"""Numbers of ranks, and the step up to which they train."""


@pytest.fixture(scope="module")
def resumed(start_module: Callable, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The losses by step and the last moving average, of an ordinary loop and of each strategy's training."""
    folder = tmp_path_factory.mktemp("checkpoints")
    found: dict[str, dict[str, Any]] = {name: {"losses": {}} for name in NAMES}
    for count, last in RANKS.items():
        ended = start_module("resume.py", folder, last, *NAMES, distribution=PyTorch(count)).wait()
        assert [rank.code for rank in ended] == [0] * count, ended
        results = json.loads(ended[0].stdout.splitlines()[-1])
        found["ordinary"] = results["ordinary"]
        for name in NAMES:
            losses = results[name]["losses"]
            assert not found[name]["losses"].keys() & losses.keys(), "it began anew"
            found[name] = {"losses": found[name]["losses"] | losses, "average": results[name]["average"]}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_curve_is_that_of_an_untouched_training(resumed: dict[str, dict[str, Any]], name: str) -> None:
    assert resumed[name]["losses"] == pytest.approx(resumed["ordinary"]["losses"], rel=1e-4)


@pytest.mark.recipe
@pytest.mark.parametrize("name", [name for name in NAMES if name != "zero3"])
def test_the_moving_average_goes_on_too(resumed: dict[str, dict[str, Any]], name: str) -> None:
    assert resumed[name]["average"] == pytest.approx(resumed["ordinary"]["average"], rel=1e-4)
