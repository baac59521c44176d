"""What scripts log to MLflow, without knowing of this engine, is the run's."""

import sys
from typing import Any

import pytest

from allranks.history import datastores
from allranks.history.records import Status, StepRecord
from allranks.local.tracking import client, tracked_runs
from allranks.local.tracking.client import may_track
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace

SCRIPT = """
import mlflow
for step in range(3):
    mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
mlflow.log_metric("bad", float("nan"))
mlflow.log_text("hello", "note.txt")
mlflow.log_text("hello", "outputs/logged.txt")
mlflow.log_text("other", "outputs/written.txt")
"""
MODEL = 'mlflow.pyfunc.log_model(name="model", python_model=lambda texts: texts, pip_requirements=[])'
"""It takes MLflow seconds."""


@pytest.mark.slow
@pytest.mark.mlflow
def test_a_script_that_only_knows_mlflow_logs_into_the_steps_run(run_steps, workspace: Workspace) -> None:
    log = f"echo own > outputs/written.txt; {sys.executable} - <<'END'\n{SCRIPT}"
    good, bad = Step("good", f"{log}{MODEL}\nEND\n"), Step("bad", f"{log}END\nexit 3")
    plan = Plan("p", Graph((good, bad, Step("shell", "true"))), experiment="digits")
    record = run_steps(plan=plan)
    curves = record.step("good").metrics
    assert [(point.step, point.value) for point in curves["loss"]] == [(0, 1.0), (1, 0.5), (2, 1 / 3)]
    assert "bad" in curves
    assert record.step("bad").status is Status.FAILED
    assert len(record.step("bad").metrics["loss"]) == 3
    assert record.step("shell").mlflow_run_id is None
    assert (workspace.root / "mlflow.db").stat().st_mode & 0o077 == 0

    from mlflow.tracking import MlflowClient

    mlflow = MlflowClient(workspace.tracking_uri)
    ends = {}
    for name in ("good", "bad"):
        run = mlflow.get_run(record.step(name).mlflow_run_id)
        ends[name] = run.info.status
        assert run.data.tags["allranks.run"] == record.id
        assert mlflow.get_experiment(run.info.experiment_id).name == "digits"
        assert [file.path for file in mlflow.list_artifacts(run.info.run_id)] == ["note.txt", "outputs"]
        artifacts = f"azureml://jobs/{record.id}:{name}/outputs/artifacts/paths"
        for path in ("note.txt", "outputs/logged.txt", *["model/MLmodel"] * (name == "good")):
            assert datastores.path_of_uri(workspace, f"{artifacts}/{path}")
        written = datastores.path_of_uri(workspace, f"{artifacts}/outputs/written.txt")
        assert written
        assert written.read_text() == "own\n"
    assert ends == {"good": "FINISHED", "bad": "FAILED"}


def test_a_step_that_cannot_log_gets_no_mlflow_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.local.tracking.client.find_spec", lambda _: object())
    assert not may_track(Step("a", "cp x y"))
    assert may_track(Step("a", "python train.py"))
    monkeypatch.setattr("allranks.local.tracking.client.find_spec", lambda _: None)
    assert not may_track(Step("a", "python train.py"))


@pytest.mark.parametrize(
    ("step", "record", "installed", "cause"),
    [
        (Step("t", "python train.py"), {}, False, 'mlflow is not installed beside allranks (pip install "allranks'),
        (Step("t", "python train.py"), {}, True, "the run has --no-track"),
        (Step("t", "./train"), {}, True, "its command does not run Python"),
        (
            Step("t", "python train.py", environment_variables={"MLFLOW_TRACKING_URI": "http://elsewhere"}),
            {"mlflow_run_id": "1"},
            True,
            "the step's environment variables set MLFLOW_TRACKING_URI",
        ),
        (
            Step("t", "python train.py"),
            {"notes": ["MLflow gets no metrics of this step: full"]},
            True,
            "MLflow gets no",
        ),
        (Step("t", "python train.py"), {"mlflow_run_id": "1"}, True, ""),
    ],
    ids=["not installed", "off", "no Python", "elsewhere", "a note", "nothing known"],
)
def test_the_cause_of_missing_metrics(
    step: Step, record: dict[str, Any], installed: bool, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (client, tracked_runs):
        monkeypatch.setattr(module, "find_spec", lambda _: object() if installed else None)
    found = tracked_runs.why_no_metrics(step, [StepRecord("t", "t", "t", "pytorch", 1, 1, **record)])
    assert found.startswith(cause)
    assert bool(found) is bool(cause)
