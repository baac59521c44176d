"""A small Llama trains on two ranks as in one process: accumulation, clipping, a schedule, and 16-bit precisions."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.pytorch import PyTorch

STEPS = 16

needs_deepspeed = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs allranks[deepspeed]")

STRATEGIES = [
    "ddp",
    "fsdp",
    pytest.param("zero1", marks=needs_deepspeed),
]
OF_16_BITS = {"ddp:float16": 5e-4, "fsdp:bfloat16": 2e-3}
"""The largest relative difference of the loss. In float32 it is 2e-7 here, in bfloat16 4e-4, in float16 6e-5."""

# They look at the same jobs. tests/runtime/test_strategies.py compares the losses of a smaller model.
pytestmark = pytest.mark.recipe


@pytest.fixture(scope="module")
def curves(start_module: Callable[..., Any]) -> dict[str, Any]:
    """The losses, gradient norms and learning rates of the steps, by strategy and precision."""
    trainings = ["ddp:float32", "fsdp:float32", *OF_16_BITS]
    if find_spec("deepspeed"):
        trainings.append("zero1:float32")
    ended = start_module("loss_curves.py", STEPS, *trainings, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    found: dict[str, Any] = json.loads(ended[0].stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def one() -> dict[str, Any]:
    """The same by an ordinary loop in one process."""
    scripts = str(Path(__file__).parent / "scripts")
    sys.path.insert(0, scripts)
    import loss_curves as script

    sys.path.remove(scripts)
    curves: dict[str, Any] = script.one_process(STEPS)
    assert curves["losses"][-1] < 0.8 * curves["losses"][0], "it learns nothing: it would prove nothing"
    assert max(curves["norms"]) > script.MAX_GRAD_NORM, "nothing is clipped: it would prove nothing"
    return curves


def difference(expected: list[float], found: list[float]) -> float:
    """Return the largest relative difference."""
    return max(abs(a - b) / abs(a) for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_loss_curve_is_that_of_one_process(curves: dict[str, Any], one: dict[str, Any], name: str) -> None:
    found = curves[f"{name}:float32"]
    assert difference(one["losses"], found["losses"]) < 1e-4
    assert difference(one["norms"], found["norms"]) < 1e-3
    assert found["rates"] == pytest.approx(one["rates"])


@pytest.mark.parametrize("name", OF_16_BITS)
def test_16_bits_stay_within_a_band(curves: dict[str, Any], one: dict[str, Any], name: str) -> None:
    found = curves[name]["losses"]
    assert difference(curves[f"{name.split(':')[0]}:float32"]["losses"][: len(found)], found) > 0, "not in 16 bits"
    assert difference(one["losses"][: len(found)], found) < OF_16_BITS[name]
