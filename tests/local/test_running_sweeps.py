"""Sweeps on real processes: layouts, values of trials, the best outputs, and policies that read MLflow."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.contract.single import Single
from allranks.history.records import Status
from allranks.local.engine import resume
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step, Sweep
from allranks.plan.ports import GraphOutput, Input, Literal, NodeOutput, Output
from allranks.plan.sweep import EarlyTermination, Parameter, Sampling
from allranks.workspace import Workspace

TRAIN = """
set -e
test $RANK = 0 || exit 0
test ${{inputs.lr}} = $AZUREML_SWEEP_lr
test ${{inputs.lr}} != 0.2 || exit 3
echo '{"event": "progress", "step": 1, "metrics": {"loss": ${{inputs.lr}}}, "total": 1, "epoch": 0, "time": 1}' \\
    >> $ALLRANKS_REPORT
echo $AZUREML_SWEEP_lr $WORLD_SIZE > ${{outputs.model}}/lr
"""


def tune(command: str, *values: float | str, **changes: object) -> Sweep:
    kind = "number" if isinstance(values[0], float) else "string"
    body = Step(
        "tune",
        command,
        inputs=(Input("lr", kind),),
        outputs=(Output("model", "uri_folder", "rw_mount"),),
        distribution=PyTorch(2),
        instance_count=2,
    )
    space = (Parameter("lr", "choice", (), tuple(map(Literal, values))),)
    node = {"body": body, "search_space": space, "metric": "loss", "sampling": Sampling("grid"), **changes}
    return Sweep("tune", **node)  # type: ignore[arg-type]


def test_the_best_of_several_trials_at_2x2(run_steps, tmp_path: Path) -> None:
    model = Input("model", "uri_folder", NodeOutput("tune", "model"), "ro_mount")
    after = Step(
        "after", "cat ${{inputs.model}}/lr > ${{outputs.text}}", inputs=(model,), outputs=(Output("text", "string"),)
    )
    returned = GraphOutput("model", NodeOutput("tune", "model"), path=str(tmp_path / "best"))
    graph = Graph((tune(TRAIN, 0.3, 0.1, 0.2), after), outputs=(returned,))
    record = run_steps(plan=Plan("p", graph))
    assert record.status is Status.COMPLETED, record.verdict
    assert record.step("tune").result == "trial 1 is the best: loss 0.1, lr 0.1"
    assert record.step("tune.trial[2]").status is Status.FAILED
    assert {rank.hostname for rank in record.step("tune.trial[0]").ranks} != {""}
    assert len(record.step("tune.trial[1]").ranks) == 4
    (text,) = record.step("after").outputs
    assert text.value == "0.1 4"
    assert (tmp_path / "best" / "lr").read_text() == "0.1 4\n"


def test_a_resumed_run_repeats_no_trial_that_failed(run_steps, tmp_path: Path, workspace: Workspace) -> None:
    after = Step("after", f"mkdir {tmp_path}/made && exit 1 || true", after=("tune",))
    graph = Graph((tune(TRAIN, 0.3, 0.1, 0.2), after))
    record = run_steps(plan=Plan("p", graph))
    assert record.status is Status.FAILED
    record = resume(record.id, workspace, Options(instances="loopback", slots=8))
    assert record.status is Status.COMPLETED, record.verdict
    trials = [record.step(f"tune.trial[{number}]") for number in range(3)]
    assert [(trial.status, trial.attempt) for trial in trials] == [
        (Status.COMPLETED, 0),
        (Status.COMPLETED, 0),
        (Status.FAILED, 0),
    ]


SCRIPT = """
import mlflow
step = 0
while step < 3 or "${{inputs.lr}}" == "bad":
    mlflow.log_metric("loss", {"good": 0.1, "bad": 0.9}["${{inputs.lr}}"], step=step)
    step += 1
"""


@pytest.mark.recipe
@pytest.mark.mlflow
def test_a_policy_stops_a_trial_by_what_it_logs_to_mlflow(run_steps) -> None:
    policy = EarlyTermination("bandit", delay=2, slack_factor=0.5)
    node = tune(f"{sys.executable} - <<'END'\n{SCRIPT}END\n", "bad", "good", early_termination=policy)
    node = replace(node, body=replace(node.body, distribution=Single(), instance_count=1))
    record = run_steps(plan=Plan("p", Graph((node,))))
    assert record.status is Status.COMPLETED, record.verdict
    stopped = record.step("tune.trial[0]")
    assert stopped.status is Status.CANCELED
    assert stopped.notes[0].startswith("stopped by bandit after ")
    assert record.step("tune").result == "trial 1 is the best: loss 0.1, lr good"
