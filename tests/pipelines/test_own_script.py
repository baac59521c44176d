"""A script of one's own as a pipeline runs it: every launch compiles, and one is run as a user runs it."""

from pathlib import Path

import pytest

from allranks.plan.reader import read_plan
from allranks.plan.walk import steps
from allranks_command import allranks
from plan_findings import check

FILE = Path(__file__).resolve().parents[2] / "pipelines" / "own_script.py"


@pytest.mark.parametrize(
    ("launch", "distribution", "processes"),
    [("pytorch", "pytorch", 3), ("mpi", "mpi", 3), ("torchrun", "pytorch", 1), ("deepspeed", "pytorch", 1)],
)
def test_a_launch(launch: str, distribution: str, processes: int, tmp_path: Path) -> None:
    plan = read_plan(str(FILE), {"launch": launch, "processes_per_instance": "3"}, tmp_path)
    assert check(plan) == []
    train = dict(steps(plan.graph))["train"]
    assert (train.component, train.distribution.type) == (f"allranks_run_{launch}", distribution)
    assert train.distribution.process_count_per_instance == processes  # type: ignore[attr-defined]
    given = {port.name for port in train.inputs if port.value is not None}
    assert ("processes" in given) is (processes == 1)


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(900)
def test_from_a_script_to_a_registered_model(tmp_path: Path) -> None:
    settings = {"instance_count": 1, "processes_per_instance": 2, "arguments": "--epochs 1", "model_name": "mine"}
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    ended = allranks("run", FILE, *options, "--json", folder=tmp_path, patience=600.0)
    assert ended.code == 0, ended.err
    assert {step["name"]: step["status"] for step in ended.json["steps"]} == {
        "train": "Completed",
        "register": "Completed",
    }
    registration = (Path(ended.json["outputs"]["registration"]) / "registration.json").read_text()
    assert '"name": "mine"' in registration
