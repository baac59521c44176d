"""A rule about a command also holds for the script that it calls, and one about a component for a step's own keys."""

from datetime import date
from pathlib import Path

import pytest

from allranks.checks.plan import findings
from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.single import Single
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.plan.ports import Output
from pipeline_files import write

OUT = (Output("out", "uri_folder", "rw_mount"),)


def rules(*steps: Step) -> list[str]:
    return [problem.rule for problem in findings(Plan("p", Graph(steps)), today=date(2026, 1, 1)).found]


@pytest.mark.parametrize(
    ("distribution", "script", "found"),
    [
        (Mpi(process_count_per_instance=1), "mpirun -np 4 python train.py\n", ["nested-launcher"]),
        (Mpi(process_count_per_instance=1), "# don't: mpirun -np 4 python train.py\npython train.py\n", []),
        (PyTorch(process_count_per_instance=2), "set -e\ntorchrun train.py\n", ["nested-launcher"]),
        (PyTorch(process_count_per_instance=1), "torchrun train.py\n", ["instances-apart"]),
        (PyTorch(process_count_per_instance=1), "torchrun --node-rank $NODE_RANK train.py\n", []),
        (Single(), "mpirun -np 4 python train.py\n", []),
    ],
)
def test_a_launcher_in_a_shell_script(
    tmp_path: Path, distribution: Distribution, script: str, found: list[str]
) -> None:
    write(tmp_path, "run.sh", script)
    code = Code(str(tmp_path), "")
    count = 1 if isinstance(distribution, Single) else 2
    assert rules(Step("a", "bash run.sh", code=code, distribution=distribution, instance_count=count)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("print(1)\n", ["spot-without-checkpoints"]),
        ("if (out / 'last.pt').exists():\n    model.load_state_dict(torch.load(out / 'last.pt'))\n", []),
    ],
)
def test_a_script_on_spot_capacity_that_resumes(tmp_path: Path, text: str, found: list[str]) -> None:
    write(tmp_path, "train.py", text)
    step = Step("a", "python train.py ${{outputs.out}}", outputs=OUT, job_tier="spot", code=Code(str(tmp_path), ""))
    assert rules(step) == found


@pytest.mark.parametrize(
    ("environment", "spec", "found"),
    [
        (Environment("base"), "", ["asset-reference"]),
        (Environment("base"), "component.yaml", []),
        (Environment("base", "@latest"), "", ["latest-label"]),
        (Environment(image="python:3.12", conda="1f0c"), "", []),
        (Environment(context="1f0c", dockerfile="Dockerfile", folder="missing"), "", ["dockerfile-missing"]),
    ],
)
def test_an_environment_of_a_steps_own(environment: Environment, spec: str, found: list[str]) -> None:
    assert rules(Step("a", "ls", environment=environment, spec=spec)) == found
