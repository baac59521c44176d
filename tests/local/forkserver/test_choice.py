"""Which fork server serves the ranks of a step, and what it imports."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.commands import Start
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.local.forkserver.choice import MLFLOW, TORCH, ForkServers, modules_of
from allranks.local.instances.supervisor import INSTANCE_KINDS, ForkServerSpec
from allranks.local.scope import Scope
from allranks.plan.graph import Code, Graph, Step

DYNAMO = (*TORCH, "torch._dynamo")


def modules(folder: Path, text: str, *, sees_gpus: bool = False, tracked: bool = False) -> tuple[str, ...]:
    (folder / "train.py").write_text(text)
    return modules_of(Start("python", "train.py"), str(folder), (), sees_gpus=sees_gpus, tracked=tracked)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import json, numpy, torchvision_of_mine\n", ()),
        ("import os, torch\n", TORCH),
        ("from torch import nn\n", TORCH),
        ("def main():\n    import torch\n", TORCH),
        ("import torch\ntorch.optim.SGD\n", DYNAMO),
        ("import helpers\n", TORCH),
        ("import parts\n", ()),
        ("from allranks import runtime\n", (*DYNAMO, "torch.distributed.checkpoint")),
        ("from allranks.runtime import arguments, clean_exit, detect\n", ()),
        ("import lightning\n", TORCH),
        ("from transformers import AutoModelForCausalLM\n", (*DYNAMO, "transformers.modeling_utils")),
    ],
)
def test_torch_is_preloaded_for_code_that_names_it(text: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("import torch\n")
    (tmp_path / "parts.py").write_text("def rarely():\n    import torch\n")
    assert modules(tmp_path, text) == expected


@pytest.mark.parametrize("text", ["import torch\ndef log():\n    import mlflow\n", "from allranks import runtime\n"])
def test_mlflow_is_preloaded_for_steps_with_a_run(text: str, tmp_path: Path) -> None:
    assert not set(MLFLOW) & set(modules(tmp_path, text))
    assert modules(tmp_path, text, tracked=True)[-len(MLFLOW) :] == MLFLOW


def test_a_package_that_looks_for_gpus_is_left_to_ranks_with_gpus(tmp_path: Path) -> None:
    text = "import torch, deepspeed\n"
    assert set(modules(tmp_path, text)) > set(modules(tmp_path, text, sees_gpus=True)) == set(TORCH)


class Prepared:
    """Stands for a supervisor."""

    async def prepare(self, spec: ForkServerSpec) -> None:
        self.spec = spec


@pytest.fixture
def step(tmp_path: Path) -> Step:
    (tmp_path / "train.py").write_text("import torch\n")
    code = Code(str(tmp_path), "digest")
    return Step("train", "python train.py", code=code, distribution=PyTorch(2), environment_variables={"A": "1"})


def choose(*steps: Step, cold: bool = False, gpus: dict[str, str] | None = None) -> list[ForkServerSpec | None]:
    supervisor: Any = Prepared()
    servers = ForkServers(supervisor, INSTANCE_KINDS["loopback"], "", lambda _: False, lambda _: cold)
    scope = Scope(Graph(steps))
    return [asyncio.run(servers.prepare(each, scope, gpus)) for each in steps]


def test_the_environment_is_that_of_the_step_on_this_machine(step: Step) -> None:
    (spec,) = choose(step, gpus={"CUDA_VISIBLE_DEVICES": "0"})
    assert spec is not None
    assert spec.interpreter == sys.executable
    variables = dict(spec.environment)
    assert {"A", "PATH", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME"} <= variables.keys()
    assert variables.keys().isdisjoint({"RANK", "AZUREML_RUN_ID", "TMPDIR", "CUDA_VISIBLE_DEVICES"})
    (hidden,) = choose(step, gpus={"CUDA_VISIBLE_DEVICES": ""})
    assert hidden is not None
    assert dict(hidden.environment)["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    "change",
    [
        {"command": "pip install einops && python train.py"},
        {"command": "bash train.sh"},
        {"distribution": Ray()},
        {"environment_variables": {"PYTHONPATH": "src"}},
        {"environment_variables": {"PYTHONVERBOSE": "1"}},
        {"environment_variables": {"PATH": "/usr/bin:/bin"}},
    ],
)
def test_steps_without_a_fork_server(change: dict[str, Any], step: Step) -> None:
    assert choose(replace(step, **change)) == [None]
    assert choose(step, cold=True) == [None]


def test_steps_share_a_fork_server_that_has_their_modules(step: Step, tmp_path: Path) -> None:
    (tmp_path / "tune.py").write_text("import torch\ntorch.optim.SGD\n")
    tune = replace(step, name="tune", command="python tune.py")
    first, second, other = choose(tune, step, replace(step, environment_variables={"A": "2"}))
    assert first is second is not None
    assert other not in (None, first)
