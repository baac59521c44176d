"""A pipeline's run in MLflow: the parent of its steps, with its inputs, its results and what its steps registered."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.history.formatting import models_of, reported_results
from allranks.history.records import ModelRecord, Status
from allranks.local.engine import Options, resume
from allranks.plan.graph import Graph, Pipeline, Plan, Step
from allranks.plan.ports import Input, Literal
from allranks.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.mlflow]

TRAIN = """
import mlflow
mlflow.log_metric("accuracy", 0.75)
mlflow.set_tag("allranks.result", "good enough")
client = mlflow.MlflowClient()
client.create_registered_model("digits")
for _ in range(2):
    client.create_model_version("digits", "somewhere", run_id=mlflow.active_run().info.run_id)
"""


def _python(script: str) -> str:
    return f"{sys.executable} - <<'END'\n{script}END\n"


@pytest.mark.recipe
def test_steps_at_any_depth_are_children_of_one_run_also_after_a_resume(
    run_steps, workspace: Workspace, tmp_path: Path
) -> None:
    later = Step("later", f"test -e {tmp_path}/go && python -c ''", after=("inner",))
    inner = Pipeline("inner", Graph((Step("train", _python(TRAIN)),)))
    plan = Plan("p", Graph((inner, later), (Input("lr", "number", Literal(0.5)),)), "Digits", experiment="digits")
    record = run_steps(plan=plan)
    assert record.status is Status.FAILED
    assert record.step("inner.train").models == [ModelRecord("digits", "1"), ModelRecord("digits", "2")]
    assert models_of(record) == {"digits": "version 1 (by inner.train), version 2 (by inner.train)"}
    assert reported_results(record) == {"inner.train": "good enough"}

    from mlflow.tracking import MlflowClient

    client = MlflowClient(workspace.tracking_uri)
    assert record.mlflow_run_id is not None
    parent = client.get_run(record.mlflow_run_id)
    assert (parent.info.run_name, parent.info.status) == ("Digits", "FAILED")
    assert (parent.data.params, parent.data.metrics) == ({"lr": "0.5"}, {"accuracy": 0.75})
    (tmp_path / "go").touch()
    resumed = resume(record.id, workspace, Options(instances="loopback"))
    assert resumed.status is Status.COMPLETED
    assert resumed.mlflow_run_id == record.mlflow_run_id
    runs = client.search_runs([parent.info.experiment_id])
    children = [run for run in runs if run.info.run_id != record.mlflow_run_id]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {record.mlflow_run_id}
    # The second step has a run for each attempt.
    assert sorted(run.data.tags["allranks.step"] for run in children) == ["inner.train", "later", "later"]
    assert client.get_run(record.mlflow_run_id).info.status == "FINISHED"

    # Nothing is created without tracking.
    reused = replace(plan, graph=Graph((Step("train", _python("print(1)")),)))
    count = len(client.search_runs([parent.info.experiment_id]))
    assert run_steps(plan=reused, track=False).mlflow_run_id is None
    assert len(client.search_runs([parent.info.experiment_id])) == count
