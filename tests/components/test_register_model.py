"""register_model: a new version in MLflow's registry, or none where the accuracy is too low."""

import json
import runpy
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from component_processes import folder_of

from allranks.errors import InputError

# MLflow takes seconds to import, and to make its tables.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("registry")]

Importer = Callable[[str, str], Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The least that is a model in MLflow's format."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "MLmodel").write_text("flavors:\n  python_function:\n    loader_module: none\nmodel_uuid: 0\n")
    (folder / "weights").write_bytes(b"\0\1\2")
    return folder


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    folder = tmp_path / "metrics"
    folder.mkdir()
    (folder / "metrics.json").write_text(json.dumps({"accuracy": 0.975, "loss": 0.25, "source": "digits"}))
    return folder


@pytest.fixture
def register(code: Importer, model: Path, metrics: Path, tmp_path: Path) -> Callable[..., str]:
    """register(name=value, ...): what the component registers with these inputs."""
    script = code("register_model", "register_model")
    inputs = {"model": model, "metrics": metrics, "name": "digits", "metric": "accuracy", "goal": "maximize"}
    inputs |= {"threshold": None, "registration": tmp_path / "registration"}
    return lambda **changed: str(script.register_if_good(Namespace(**(inputs | changed))))


def test_a_good_model_becomes_a_version_with_its_files_and_tags(
    model: Path,
    metrics: Path,
    registry_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from mlflow import MlflowClient

    script = folder_of("register_model") / "register_model.py"
    places = [f"--{name}={tmp_path / name}" for name in ("model", "metrics", "registration")]
    monkeypatch.setattr("sys.excepthook", sys.excepthook)  # the program replaces it
    monkeypatch.setattr("sys.argv", [str(script), *places, "--name", "digits", "--threshold", "0.97"])
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    line = "registered as digits, version 1: accuracy 0.9750\n"
    assert line in capsys.readouterr().out
    assert (tmp_path / "outputs/result.txt").read_text() == line
    written = json.loads((tmp_path / "registration/registration.json").read_text())
    assert written == {
        "name": "digits",
        "version": "1",
        "metric": "accuracy",
        "value": 0.975,
        "goal": "maximize",
        "threshold": 0.97,
    }
    client = MlflowClient(registry_address, registry_address)
    found = client.get_model_version("digits", "1")
    assert found.tags == {"accuracy": "0.9750", "data": "digits", "run": found.run_id}
    weights = client.download_artifacts(found.run_id, "model/weights", str(tmp_path))
    assert Path(weights).read_bytes() == b"\0\1\2"


@pytest.mark.parametrize(
    ("metric", "goal", "threshold", "said"),
    [
        ("accuracy", "maximize", 0.98, "accuracy 0.9750 is below the minimum of 0.9800"),
        ("loss", "minimize", 0.1, "loss 0.2500 is above the maximum of 0.1000"),
    ],
)
def test_a_model_that_misses_the_threshold_is_not_registered(
    register: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    metric: str,
    goal: str,
    threshold: float,
    said: str,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    assert register(metric=metric, goal=goal, threshold=threshold) == f"not registered as digits: {said}"
    assert json.loads((tmp_path / "registration/registration.json").read_text())["version"] is None
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model/MLmodel", None, "holds no file MLmodel"),
        ("model/MLmodel", "artifact_path: model", "names no flavors"),
        ("model/MLmodel", "{", "names no flavors"),
        ("metrics/metrics.json", None, "cannot be read"),
        ("metrics/metrics.json", "accuracy: 0.97", "cannot be read"),
        ("metrics/metrics.json", "[0.97]", "holds a list"),
        ("metrics/metrics.json", '{"loss": 0.1}', r"no accuracy; it has loss"),
        ("metrics/metrics.json", '{"accuracy": NaN}', "accuracy is nan"),
        ("metrics/metrics.json", '{"accuracy": "high"}', "accuracy is 'high'"),
    ],
    ids=[
        "no model",
        "no flavors",
        "no YAML",
        "no metrics",
        "no JSON",
        "no object",
        "no accuracy",
        "no finite number",
        "no number",
    ],
)
def test_what_cannot_be_registered(
    register: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    content: str | None,
    said: str,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=said):
        register()
    assert not (tmp_path / "registration").exists()


def test_without_a_registry_nothing_is_registered(
    register: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(InputError, match="MLFLOW_TRACKING_URI: it is not set"):
        register()
