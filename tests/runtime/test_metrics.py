import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from allranks.contract import report

STEPS = 700
OWN_IMPORTS = ("-u",)
"""Options of a rank that is started and not forked: what it has imported, it has imported itself."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's database with its tables, which take it seconds to make."""
    import mlflow

    file = tmp_path_factory.mktemp("tables") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{file}").search_experiments()
    return file


@pytest.fixture
def store(tables: Path, tmp_path: Path) -> Iterator[Any]:
    """A client of an empty MLflow store, whose URI is its tracking_uri."""
    import mlflow

    before = dict(os.environ)
    shutil.copy(tables, tmp_path / "mlflow.db")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    client.create_experiment("digits", artifact_location=str(tmp_path / "artifacts"))
    yield client
    os.environ.clear()
    os.environ.update(before)


def variables(store: Any, **more: str) -> dict[str, str]:
    return {"MLFLOW_TRACKING_URI": store.tracking_uri, "MLFLOW_EXPERIMENT_NAME": "digits", **more}


def the_run(store: Any) -> Any:
    (run,) = store.search_runs([store.get_experiment_by_name("digits").experiment_id])
    return run


@pytest.mark.slow
def test_rank_0_alone_logs_into_the_run_that_it_was_given(two: Callable, store: Any) -> None:
    given = store.create_run(store.get_experiment_by_name("digits").experiment_id)
    given_run = variables(store, MLFLOW_RUN_ID=given.info.run_id)
    ended = two("log_metrics.py", "model", variables=given_run, interpreter=OWN_IMPORTS)
    assert [rank.code for rank in ended] == [0, 0], ended
    assert ended[1].stdout == "False\n", "MLflow is not even imported on rank 1"

    run = the_run(store)
    assert run.info.run_id == given.info.run_id
    assert run.info.status == "RUNNING", "whoever made the run ends it"
    assert run.data.params == {"epochs": "2", "model": "mlp"}
    history = store.get_metric_history(given.info.run_id, "loss")
    assert {metric.step: metric.value for metric in history} == {
        step: pytest.approx(1 / step) for step in range(1, STEPS + 1)
    }
    assert len(history) == STEPS
    assert set(run.data.metrics) == {"loss"}, "what is None is left out"
    assert {file.path for file in store.list_artifacts(given.info.run_id)} == {"classes.json", "reports"}
    (model,) = run.outputs.model_outputs
    assert store.get_logged_model(model.model_id).source_run_id == given.info.run_id

    reported = ended[0].of(report.Progress)
    assert [progress.step for progress in reported] == list(range(1, STEPS + 1))
    last = reported[-1]
    assert (last.step, last.total, last.epoch) == (STEPS, STEPS, 1)
    assert last.metrics == {"loss": pytest.approx(1 / STEPS)}
    assert ended[1].of(report.Progress) == []


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code", "status"), [("", 0, "FINISHED"), ("fail", 1, "FAILED")])
def test_a_run_of_its_own_is_ended(start: Callable, store: Any, how: str, code: int, status: str) -> None:
    (ended,) = start("log_metrics.py", how, variables=variables(store)).wait()
    assert ended.code == code, ended
    run = the_run(store)
    assert run.info.status == status
    assert run.data.metrics == {"loss": pytest.approx(1 / STEPS)}


@pytest.mark.slow
def test_no_store(start: Callable) -> None:
    (ended,) = start("log_metrics.py", "model").wait()
    assert ended.code == 0, ended
    assert ended.of(report.Note) == []
    assert len(ended.of(report.Progress)) == STEPS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uri", "argument", "reason"),
    [
        ("http://127.0.0.1:{port}", "", "Connection"),
        ("http://127.0.0.1:{port}", "without_mlflow", "mlflow"),
    ],
    ids=["http", "no-mlflow"],
)
def test_a_store_that_fails_is_told_once(start: Callable, free_port: int, uri: str, argument: str, reason: str) -> None:
    uri = uri.format(port=free_port)
    given = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    (ended,) = start("log_metrics.py", argument, variables=given).wait()
    assert ended.code == 0, ended
    (note,) = ended.of(report.Note)
    assert reason in note.text
    assert "The training continues" in note.text
    assert note.text in ended.stderr
