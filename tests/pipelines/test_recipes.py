"""The pipelines around a recipe each: they validate with no network, and one of them is run to its end here. The
trainings of the others are run in tests/components."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allranks_command import allranks

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
Importer = Callable[[str], Any]


@pytest.fixture
def function(pipeline_file: Importer) -> Importer:
    """Returns a file's pipeline function, which has the file's name."""
    return lambda name: getattr(pipeline_file(name), name)


@pytest.mark.parametrize(
    ("name", "arguments", "component", "distribution"),
    [
        ("gradient_boosting", {}, "train_gradient_boosting", ("PyTorch", 1)),
        ("lightning", {}, "train_lightning", ("PyTorch", 1)),
        ("lightning", {"launch": "per_process"}, "train_lightning", ("PyTorch", 2)),
        ("tensorflow", {}, "train_tensorflow", ("TensorFlow", 0)),
        ("tensorflow", {"launch": "parameter_server"}, "train_tensorflow_parameter_server", ("TensorFlow", 1)),
        ("tensorflow", {"launch": "horovod"}, "train_tensorflow_horovod", ("Mpi", 1)),
    ],
)
def test_a_recipe_validates(
    function: Importer, name: str, arguments: dict[str, Any], component: str, distribution: tuple[str, int]
) -> None:
    job = function(name)(**arguments)
    job.settings.default_compute = "cpu-cluster"
    assert job._validate().passed, job._validate().error_messages
    assert list(job.jobs) == ["prepare", "train", "evaluate", "register"]
    assert set(job.outputs) == {"model", "history", "metrics", "registration"}
    assert job.jobs["train"]._component.name == f"allranks_{component}"
    jobs = job._to_rest_object().properties.jobs
    for step in ("train", "evaluate"):
        assert jobs[step]["resources"]["instance_count"] == "${{parent.inputs.instance_count}}"
    found = jobs["train"]["distribution"]
    inputs = {key: value._data for key, value in job.inputs.items()}
    count = found.get("process_count_per_instance", found.get("parameter_server_count"))
    if isinstance(count, str) and "processes_per_instance" in count:
        count = inputs["processes_per_instance"]
    assert (found["distribution_type"], int(count or 0)) == distribution


@pytest.mark.parametrize("name", ["lightning", "tensorflow"])
def test_another_launch_is_refused_with_those_that_there_are(function: Importer, name: str) -> None:
    with pytest.raises(ValueError, match="launch is 'carrier pigeon'; give one of"):
        function(name)(launch="carrier pigeon")


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [("lightning", (), 0.95), ("tensorflow", (), 0.95), ("tensorflow", ("--set", "launch=parameter_server"), 0.9)],
)
def test_an_image_recipe_on_two_instances_reaches_its_quality(
    tmp_path: Path, name: str, settings: tuple[str, ...], least: float
) -> None:
    if name == "tensorflow" and not (PIPELINES.parent / ".venvs/allranks-tensorflow").is_dir():
        pytest.skip("make tensorflow")
    words = ("--set", f"threshold={least}", *settings)
    ended = allranks("run", PIPELINES / f"{name}.py", *words, "--json", folder=tmp_path, patience=800)
    assert ended.code == 0, ended.err
    steps = {step["name"]: step for step in ended.json["steps"]}
    assert {rank["instance_rank"] for rank in steps["train"]["ranks"]} == {0, 1}
    registration = json.loads(next(Path(ended.json["outputs"]["registration"]).rglob("*.json")).read_text())
    assert registration["version"] == "1"
    assert registration["value"] >= least


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(900)
def test_gradient_boosting_on_three_instances_reaches_its_quality(tmp_path: Path) -> None:
    settings = ("--set", "num_iterations=80", "--set", "threshold=0.95")
    ended = allranks("run", PIPELINES / "gradient_boosting.py", *settings, "--json", folder=tmp_path, patience=800)
    assert ended.code == 0, ended.err
    steps = {step["name"]: step for step in ended.json["steps"]}
    assert [(rank["instance_rank"], rank["local_rank"]) for rank in steps["train"]["ranks"]] == [(0, 0), (1, 0), (2, 0)]
    (auc,) = steps["evaluate"]["metrics"]["test_auc"]
    assert auc["value"] >= 0.96
    registration = json.loads(next(Path(ended.json["outputs"]["registration"]).rglob("*.json")).read_text())
    assert (registration["name"], registration["version"]) == ("gradient-boosting", "1")
    curve = [point["value"] for point in steps["train"]["metrics"]["validation_log_loss"]]
    assert curve[-1] < curve[0]
