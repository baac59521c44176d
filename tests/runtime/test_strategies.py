"""One training under every strategy: losses, accumulation, clipping, precision, checkpoints; what is refused."""

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime import strategies
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.strategies.settings import TrainingSettings
from free_ports import free_port

SCRIPT = Path(__file__).parent / "scripts" / "strategies.py"
MPIRUN = shutil.which("mpirun", path=sysconfig.get_path("scripts"))
MPIRUN_COMMAND = [str(MPIRUN), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MPIRUN_COMMAND += ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]

needs_deepspeed = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs allranks[deepspeed]")
needs_horovod = pytest.mark.skipif(find_spec("horovod") is None or MPIRUN is None, reason="needs make horovod")

BY_TORCH = ["ddp", "fsdp"]
BY_DEEPSPEED = ["zero0", "zero3"]  # test_loss_curves.py has zero1, and test_eviction.py zero2
DEEPSPEED_STAGES = [pytest.param(name, marks=needs_deepspeed) for name in BY_DEEPSPEED]
STRATEGIES = [
    *BY_TORCH,
    *DEEPSPEED_STAGES,
    pytest.param("horovod", marks=needs_horovod),
]


@pytest.fixture(scope="module")
def results(start_module: Callable[..., Any]) -> dict[str, Any]:
    """What ranks did under every strategy that is installed."""
    jobs = [(4, ["fsdp"]), (2, ["ddp", *(BY_DEEPSPEED if find_spec("deepspeed") else [])])]
    found: dict[str, Any] = {}
    for count, names in jobs:
        ended = start_module("strategies.py", *names, distribution=PyTorch(count)).wait()
        assert [rank.code for rank in ended] == [0] * count, ended
        found |= json.loads(ended[0].stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def by_horovod(module_environment: dict[str, str]) -> dict[str, Any]:
    """The same by a real mpirun."""
    # mpirun names no port, and the default one may be in use: by a test beside this one.
    port = free_port()
    ended = subprocess.run(
        [*MPIRUN_COMMAND, "-np", "2", sys.executable, str(SCRIPT), "horovod"],
        env={**module_environment, "OPAL_PREFIX": sys.prefix, "MASTER_PORT": str(port)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 0, ended
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.fixture(params=STRATEGIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def found(name: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What came out under one strategy."""
    result: dict[str, Any] = request.getfixturevalue("by_horovod" if name == "horovod" else "results")[name]
    return result


@pytest.fixture(scope="module")
def one() -> Iterator[dict[str, Any]]:
    """One process, an ordinary loop, no strategy."""
    sys.path.insert(0, str(SCRIPT.parent))
    sys.modules.pop("strategies", None)
    import strategies as script  # the script beside this file, not the runtime's package

    sys.path.remove(str(SCRIPT.parent))

    model, optimizer = script.model_and_optimizer()
    initial = script.listed({key: value.clone() for key, value in model.state_dict().items()})
    whole = []
    for step in range(script.STEPS):
        loss = script.loss_of(model, script.batch(step))
        loss.backward()
        whole.append(float(loss.detach()))
        optimizer.step()
        optimizer.zero_grad()
    assert whole[-1] < whole[0] / 3, "this training learns nothing: it would prove nothing"
    yield {
        "whole": whole,
        "weights": script.listed(model.state_dict()),
        "initial": initial,
        "two_models": script.two_models("none"),
    }
    sys.modules.pop("strategies", None)


def difference(expected: list[float], found: list[float]) -> float:
    """The largest relative one."""
    return max(abs(a - b) / abs(a) for a, b in zip(expected, found, strict=True))


def assert_same(expected: dict[str, list[float]], found: dict[str, list[float]]) -> None:
    assert list(found) == list(expected)
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=1e-3, abs=1e-5), key


@pytest.mark.slow
def test_twenty_steps_are_those_of_one_process(found: dict[str, Any], one: dict[str, Any]) -> None:
    assert difference(one["whole"], found["whole"]) < 1e-3
    assert_same(one["weights"], found["weights_then"])
    assert found["whole_on_main_alone"]


@pytest.mark.slow
def test_a_created_model_has_the_weights_of_an_ordinary_one(found: dict[str, Any], one: dict[str, Any]) -> None:
    assert found["created"] == one["initial"]


@pytest.mark.slow
def test_two_models_train_each_other_as_in_one_process(found: dict[str, Any], one: dict[str, Any]) -> None:
    assert difference(one["two_models"], found["two_models"]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fsdp"], indirect=True)
def test_groups_of_ranks_with_replicas_give_the_same_losses(found: dict[str, Any]) -> None:
    assert difference(found["whole"][: len(found["in_groups"])], found["in_groups"]) < 1e-5


@pytest.mark.slow
def test_a_training_resumes_bit_for_bit(found: dict[str, Any]) -> None:
    """On the same number of ranks. test_resuming.py has another one."""
    assert found["resumed"] == found["whole"][10:20]
    assert found["resumed_weights"] == found["weights_then"]


@pytest.mark.slow
def test_recomputed_blocks_give_the_same_losses(found: dict[str, Any]) -> None:
    assert difference(found["whole"][: len(found["recomputed"])], found["recomputed"]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fsdp", DEEPSPEED_STAGES[-1]], indirect=True)
def test_offloading_gives_the_same_losses(found: dict[str, Any]) -> None:
    assert difference(found["whole"][: len(found["offloaded"])], found["offloaded"]) < 1e-5


@pytest.mark.slow
def test_bfloat16_learns(found: dict[str, Any]) -> None:
    exact, lower = found["whole"], found["bfloat16"]
    assert lower != exact[: len(lower)], "this was not computed in bfloat16"
    assert lower[-1] < lower[0] / 2
    assert difference(exact[: len(lower)], lower) < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "float8"}, "one of float32, bfloat16, float16"),
        ({"deepspeed_stage": 4}, "one of 0, 1, 2, 3"),
        ({"gradient_accumulation_steps": 0}, "at least 1"),
        ({"gradient_accumulation_steps": 2.5}, "a whole number"),
        ({"max_grad_norm": -1.0}, "0 or more"),
        ({"activation_checkpointing": True}, "blocks"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingSettings(**options)


def prepare(ranks: Ranks, name: str, **options: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    strategy = strategies.strategy(name, ranks.device)
    return strategy.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), TrainingSettings(**options))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ddp", {"offload": True}, "offload"),
        ("ddp", {"deepspeed_config": Path("x.json")}, "deepspeed_config"),
        ("ddp", {"deepspeed_stage": 1}, "deepspeed_stage"),
        ("ddp", {"shard_group_size": 2}, "shard_group_size"),
        ("ddp", {"sync_batchnorm": True}, "sync_batchnorm: the ranks train on CPUs"),
        ("fsdp", {"find_unused_parameters": True}, "find_unused_parameters"),
        ("fsdp", {"shard_group_size": 2}, "a divisor of 1"),
        ("fsdp", {"blocks": (torch.nn.Conv2d,)}, "has no Conv2d"),
        pytest.param("deepspeed", {"compile": True, "deepspeed_stage": 3}, "ZeRO stage 3", marks=needs_deepspeed),
        pytest.param("deepspeed", {"precision": "float16"}, "on the CPU", marks=needs_deepspeed),
    ],
)
def test_settings_that_a_strategy_has_nothing_for(
    alone: Ranks, name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        prepare(alone, name, **options)


def test_unknown_strategy() -> None:
    with pytest.raises(InputError, match="one of ddp, deepspeed, fsdp, horovod"):
        strategies.check("zero")


@pytest.mark.parametrize(("name", "fix"), [("deepspeed", r"allranks\[deepspeed\]"), ("horovod", "make horovod")])
def test_a_missing_stack_names_what_installs_it(monkeypatch: pytest.MonkeyPatch, name: str, fix: str) -> None:
    monkeypatch.setattr(strategies, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=f"{name} is not installed\n  fix: .*{fix}"):
        strategies.check(name)


@pytest.mark.slow
def test_a_checkpoint_of_another_strategy_is_refused(alone: Ranks) -> None:
    with pytest.raises(InputError, match="saved with the strategy ddp"):
        prepare(alone, "fsdp").load_state_dict(prepare(alone, "ddp").state_dict())
