"""The average of the weights, as the formula gives it, under every strategy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime.strategies.exponential_moving_average import ExponentialMovingAverage
from runtime.scripts.averages import DECAY, Model

STRATEGIES = ["ddp", "fsdp", "deepspeed"]


@pytest.fixture(scope="module")
def found(start_module: Callable, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What rank 0 of two found under each strategy."""
    folder: Path = tmp_path_factory.mktemp("averages")
    ended = start_module("averages.py", folder, *STRATEGIES, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    return {name: torch.load(folder / f"{name}.pt") for name in STRATEGIES}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        torch.testing.assert_close(value, right[name], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_average_is_the_formulas(found: dict[str, Any], strategy: str) -> None:
    first, *history = found[strategy]["history"]
    assert not torch.equal(first["first.weight"], history[-1]["first.weight"]), "nothing was trained"
    expected = {name: value.double() if value.is_floating_point() else value for name, value in first.items()}
    for weights in history:
        for name, value in weights.items():
            if value.is_floating_point():
                expected[name] = DECAY * expected[name] + (1 - DECAY) * value
            else:
                expected[name] = value
    same({name: value.to(first[name].dtype) for name, value in expected.items()}, found[strategy]["weights"])
    same(found[strategy]["weights"], found[strategy]["loaded"])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_model_has_the_average_within_the_context_alone(found: dict[str, Any], strategy: str) -> None:
    results = found[strategy]
    same(results["exported"], results["weights"])
    same(results["restored"], results["history"][-1])
    assert torch.equal(results["before"], results["after"])
    model = Model().eval()
    for weights, output in (("weights", "within"), ("restored", "after")):
        model.load_state_dict(results[weights])
        torch.testing.assert_close(model(torch.ones(2, 7)), results[output])


def test_16_bit_weights_are_averaged_in_float32() -> None:
    model = nn.Linear(4, 4, bias=False, dtype=torch.bfloat16)
    average = ExponentialMovingAverage(model, 0.999)
    before = model.weight.detach().float()
    with torch.no_grad():
        model.weight += 1
    for _ in range(10):
        average.update()
    moved = average.state_dict()["averages"]["weight"] - before
    torch.testing.assert_close(moved, (1 - 0.999**10) * (model.weight.detach().float() - before))
    assert average.weights()["weight"].dtype == torch.bfloat16


def test_the_first_weights_are_forgotten_soon_with_a_warm_up() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    average = ExponentialMovingAverage(model, 0.9, warm_up=True)
    nn.init.zeros_(model.weight)
    values = []
    for _ in range(3):
        average.update()
        values.append(average.weights()["weight"].item())
    assert values == pytest.approx([1 / 10, 1 / 10 * 2 / 11, 1 / 10 * 2 / 11 * 3 / 12])


def test_no_update_while_the_model_has_the_average() -> None:
    average = ExponentialMovingAverage(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="averaged"), average.averaged():
        average.update()
    average.update()


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"decay: 1\.5"):
        ExponentialMovingAverage(nn.Linear(1, 1), 1.5)
    sharded = nn.Linear(1, 1)
    sharded.weight.ds_id = 0  # as under ZeRO 3
    with pytest.raises(InputError, match="deepspeed_stage: 3"):
        ExponentialMovingAverage(sharded)
    average = ExponentialMovingAverage(nn.Linear(2, 1))
    with pytest.raises(ValueError, match=r"size mismatch for weight: \(1, 1\), not \(1, 2\)"):
        average.load_state_dict(ExponentialMovingAverage(nn.Linear(1, 1)).state_dict())
    with pytest.raises(ValueError, match="other parameters: bias"):
        average.load_state_dict(ExponentialMovingAverage(nn.Linear(2, 1, bias=False)).state_dict())
