"""check_metric: what it reads, what it answers, and where the answers are written."""

import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from component_processes import folder_of

from allranks.errors import InputError

Importer = Callable[[str, str], Any]


@pytest.fixture
def check(code: Importer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Runs the program in this process, with these arguments."""

    def run(*arguments: str) -> None:
        places = [f"--{name}={tmp_path / name}" for name in ("metrics", "value", "missed", "improved")]
        spec = folder_of("check_metric") / "component.yaml"
        monkeypatch.setattr("sys.argv", ["check_metric.py", "--spec", str(spec), *places, *arguments])
        monkeypatch.setattr("sys.excepthook", sys.excepthook)  # the program replaces it
        monkeypatch.chdir(tmp_path)
        code("check_metric", "check_metric").main()

    return run


@pytest.mark.parametrize(
    ("goal", "value", "baseline", "target", "margin", "missed", "improved"),
    [
        ("maximize", 0.90, None, 0.95, 0.0, True, True),
        ("maximize", 0.95, None, 0.95, 0.0, False, True),
        ("maximize", 0.95 - 1e-16, 0.95, 0.95, 0.0, False, False),
        ("maximize", 0.90, 0.90, 0.80, 0.0, False, False),
        ("maximize", 0.91, 0.90, 0.80, 0.02, False, False),
        ("maximize", 0.92, 0.90, 0.80, 0.02, False, True),
        ("maximize", 0.70, 0.90, 0.80, 0.0, True, False),
        ("minimize", 0.70, 0.90, 0.80, 0.0, False, True),
        ("minimize", 0.89, 0.90, 0.80, 0.02, True, False),
    ],
)
def test_a_value_is_compared_with_the_target_and_the_baseline(
    check: Callable[..., None],
    tmp_path: Path,
    goal: str,
    value: float,
    baseline: float | None,
    target: float,
    margin: float,
    missed: bool,
    improved: bool,
) -> None:
    write_metrics(tmp_path, accuracy=value, baseline=None if baseline is None else {"accuracy": baseline})
    check("--goal", goal, "--target", str(target), "--margin", str(margin))
    written = [(tmp_path / name).read_text() for name in ("value", "missed", "improved")]
    assert written == [str(value), str(missed), str(improved)]


def write_metrics(folder: Path, **content: object) -> None:
    (folder / "metrics").mkdir()
    (folder / "metrics/metrics.json").write_text(json.dumps(content))


def test_the_answers_are_files_with_texts(
    check: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_metrics(tmp_path, accuracy=0.5, macro_f1=0.75, baseline={"accuracy": 0.1, "macro_f1": 0.875})
    check("--metric", "macro_f1", "--target", "0.7")
    written = [(tmp_path / name).read_text() for name in ("value", "missed", "improved")]
    assert written == ["0.75", "False", "False"]
    line = "macro_f1 0.7500 reaches the target of 0.7000, not better than 0.8750\n"
    assert line in capsys.readouterr().out
    assert (tmp_path / "outputs/result.txt").read_text() == line


@pytest.mark.parametrize("content", [None, "not JSON", "[]", '{"accuracy": "high"}', '{"loss": 1}'])
def test_metrics_that_cannot_be_read_are_named(check: Callable[..., None], tmp_path: Path, content: str | None) -> None:
    (tmp_path / "metrics").mkdir()
    if content is not None:
        (tmp_path / "metrics/metrics.json").write_text(content)
    with pytest.raises(InputError, match=f"input metrics: {tmp_path / 'metrics/metrics.json'}"):
        check()
    assert not (tmp_path / "missed").exists()


def test_on_azure_ml_the_answers_are_properties_of_the_run_too(
    code: Importer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a workspace: MLflow's client is replaced by one that has the address of a server of ours."""
    received: list[tuple[str, Any]] = []

    class RunHistory(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            received.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), RunHistory) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            client_of(monkeypatch, f"http://127.0.0.1:{server.server_port}/mlflow/v1.0/workspaces/w")
            monkeypatch.setenv("MLFLOW_TRACKING_URI", "azureml://westeurope.api.azureml.ms/mlflow/v1.0/workspaces/w")
            monkeypatch.setenv("MLFLOW_RUN_ID", "calm_plum")
            code("check_metric", "allranks_steps.models.results").write_control_outputs(
                {"below": (tmp_path / "below", True)}
            )
        finally:
            server.shutdown()
    properties = {"azureml.pipeline.control": '{"below": true}'}
    address = "/history/v1.0/workspaces/w/experimentids/7/runs/calm_plum"
    assert received == [(address, {"runId": "calm_plum", "properties": properties})]
    assert (tmp_path / "below").read_text() == "True"


def client_of(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Give MLflow's client the credentials that azureml-mlflow would: of that address."""
    import mlflow.tracking
    from mlflow.utils.rest_utils import MlflowHostCreds

    store = SimpleNamespace(get_host_creds=lambda: MlflowHostCreds(address))
    run = SimpleNamespace(info=SimpleNamespace(experiment_id="7", run_id="calm_plum"))
    client = SimpleNamespace(get_run=lambda _: run, _tracking_client=SimpleNamespace(store=store))
    monkeypatch.setattr(mlflow.tracking, "MlflowClient", lambda: client)
