"""A training continues on fewer instances, and on all of them again, with the steps of an untouched one."""

import json
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.contract.variables import ELASTIC_INSTANCES

NEEDS_DEEPSPEED = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs allranks[deepspeed]")
NEEDS_HOROVOD = pytest.mark.skipif(find_spec("horovod") is None, reason="needs make horovod")
INSTANCES = ((3, 14), (2, 27), (3, 40))
"""Numbers of instances, and the step up to which they train."""


@pytest.fixture
def train(start: Callable[..., Any], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """train(name, (instances, step), ...): the losses, learning rates and samples of a training by a strategy."""

    def train(name: str, *parts: tuple[int, int]) -> dict[str, Any]:
        folder = tmp_path / f"checkpoints {len(parts)}"
        found: dict[str, Any] = {"losses": {}, "rates": {}, "drawn": Counter(), "random": []}
        for count, last in parts:
            variables = {ELASTIC_INSTANCES: "2:3"}
            job = start(
                "elastic.py", folder, last, name, distribution=PyTorch(1), instance_count=count, variables=variables
            )
            ended = job.wait()
            assert [rank.code for rank in ended] == [0] * count, ended
            results = json.loads(ended[0].stdout.splitlines()[-1])
            assert not found["losses"].keys() & results["losses"].keys(), "it began anew"
            found["losses"] |= results["losses"]
            found["rates"] |= results["rates"]
            found["drawn"] += Counter(results["drawn"])
            found["random"] += results["random"]
        return found

    return train


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ddp", marks=pytest.mark.slow),
        pytest.param("fsdp", marks=pytest.mark.recipe),
        *(pytest.param(f"zero{stage}", marks=[pytest.mark.recipe, NEEDS_DEEPSPEED]) for stage in (1, 3)),
        pytest.param("horovod", marks=[pytest.mark.recipe, NEEDS_HOROVOD]),
    ],
)
def test_3_2_3_instances_train_as_3_do(train: Callable[..., dict[str, Any]], name: str) -> None:
    untouched, elastic = train(name, INSTANCES[-1]), train(name, *INSTANCES)
    losses = untouched["losses"]
    assert len(losses) == 40
    assert losses["39"] < 0.7 * losses["0"], "it learns nothing: it would prove nothing"
    assert elastic["losses"] == pytest.approx(losses, rel=1e-4)
    assert elastic["rates"] == untouched["rates"]
    assert elastic["drawn"] == untouched["drawn"]
    assert set(elastic["drawn"].values()) == {1}
    assert len(set(elastic["random"])) == 3 + 2 + 3, "a rank repeats random numbers, its own or another's"
