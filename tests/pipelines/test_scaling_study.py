"""The scaling study: which steps it has for which settings, and both ways to run it as a user does."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from allranks_command import allranks, write
from compiled_jobs import complaints

FILE = Path(__file__).resolve().parents[2] / "pipelines" / "scaling_study.py"
PATIENCE = 600.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""

OWN = """
    type: command
    name: own
    version: "1"
    display_name: Own training
    code: .
    environment: azureml:any@latest
    inputs:
      data: {type: uri_file}
      images: {type: integer}
    outputs:
      history: {type: uri_file}
    resources: {instance_count: 7, shm_size: 3g}
    distribution: {type: pytorch, process_count_per_instance: 2}
    command: python train.py ${{inputs.data}} ${{inputs.images}} ${{outputs.history}}
"""
SCRIPT = """
    import json, os, sys
    if os.environ["RANK"] == "0":
        data, images, history = sys.argv[1:]
        points = [{"step": step, "seconds": float(open(data).read())} for step in range(1, 20)]
        about = {"instance_count": int(os.environ["AZUREML_NODE_COUNT"]), "world_size": int(os.environ["WORLD_SIZE"])}
        with open(history, "w") as file:
            samples = int(images) * about["world_size"]
            json.dump(about | {"samples_per_step": samples, "points": points}, file)
"""


@pytest.fixture(scope="module")
def study(pipeline_file: Callable[[str], ModuleType]) -> ModuleType:
    return pipeline_file("scaling_study")


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """Settings for a training of one's own, whose inputs are in a file beside its data."""
    write(tmp_path, "own/train.py", SCRIPT)
    write(tmp_path, "seconds", "0.5")
    write(tmp_path, "inputs.yaml", "images: 10\ndata: {type: uri_file, path: seconds}")
    component = write(tmp_path, "own/component.yaml", OWN)
    return {"component": str(component), "inputs": str(tmp_path / "inputs.yaml"), "batch_input": "images"}


def trainings(job: Any) -> dict[str, Any]:
    """The steps that train, as they are submitted."""
    assert complaints(job) == {}
    jobs = job._to_rest_object().properties.jobs
    return {name: step for name, step in jobs.items() if name.startswith("on_")}


def test_the_default_trains_on_1_2_and_4_instances_and_compares(study: ModuleType) -> None:
    job = study.scaling_study()
    assert list(job.jobs) == ["prepare", "on_1", "on_2", "on_4", "compare"]
    found = trainings(job)
    assert [step["resources"]["instance_count"] for step in found.values()] == [1, 2, 4]
    batches = [step["inputs"]["per_device_train_batch_size"]["value"] for step in found.values()]
    assert batches == ["16", "8", "4"]
    for step in found.values():
        counts = step["distribution"]["process_count_per_instance"]
        assert counts == "${{parent.inputs.processes_per_instance}}"
    compared = job._to_rest_object().properties.jobs["compare"]["inputs"]
    assert [compared[f"history_{number}"]["value"] for number in (1, 2, 3)] == [
        f"${{{{parent.jobs.on_{count}.outputs.history}}}}" for count in (1, 2, 4)
    ]
    assert "history_4" not in compared
    assert set(job.outputs) == {"scaling"}


def test_weak_scaling_keeps_the_batch_of_a_rank(study: ModuleType) -> None:
    given = "{per_device_train_batch_size: 12}"
    for scaling, batches in (("weak", ["12", "12", "12"]), ("strong", ["12", "8", "3"])):
        found = trainings(study.scaling_study(instance_counts="2,3,8", scaling=scaling, inputs=given))
        assert [step["inputs"]["per_device_train_batch_size"]["value"] for step in found.values()] == batches


def test_a_component_of_one_s_own_keeps_its_resources(study: ModuleType, own: dict[str, str], tmp_path: Path) -> None:
    job = study.scaling_study(**own, scaling="weak", instance_counts="1,3")
    assert list(job.jobs) == ["on_1", "on_3", "compare"]
    found = trainings(job)
    assert [step["inputs"]["images"]["value"] for step in found.values()] == ["10", "10"]
    assert {step["inputs"]["data"]["uri"] for step in found.values()} == {str(tmp_path / "seconds")}
    for step, count in zip(job.jobs.values(), (1, 3), strict=False):
        assert (step.resources.instance_count, step.resources.shm_size) == (count, "3g")
        assert step.distribution.process_count_per_instance == 2


def test_a_pipeline_of_one_s_own_has_its_steps_first(study: ModuleType) -> None:
    from azure.ai.ml.dsl import pipeline

    @pipeline
    def mine() -> Any:
        data = study.prepare_text()
        found = study.study_scaling(
            lambda count: study.train_language_model(data=data.outputs.text, max_steps=count),
            [1, 5],
            min_efficiency=0.5,
        )
        return {"scaling": found.outputs.scaling}

    found = trainings(mine())
    assert [step["inputs"]["max_steps"]["value"] for step in found.values()] == ["1", "5"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"instance_counts": "1,two"}, "give numbers with commas between"),
        ({"instance_counts": "2,1"}, "give each once, from 1 upwards"),
        ({"instance_counts": "0,1"}, "give each once, from 1 upwards"),
        ({"instance_counts": "1,1"}, "give each once, from 1 upwards"),
        ({"instance_counts": "1,2,3,4,5,6,7,8,9"}, "give at most 8"),
        ({"scaling": "sideways"}, "give strong or weak"),
        ({"inputs": "[1, 2]"}, "give a YAML file of names and values"),
        ({"batch_input": "batch"}, "strong scaling needs batch among the inputs"),
        ({"instance_counts": "1,3"}, "is 16 on 1 instances; give one that 3 instances can divide"),
    ],
)
def test_settings_that_cannot_be(study: ModuleType, changes: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        study.scaling_study(**changes)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.recipe
def test_it_writes_its_page(tmp_path: Path) -> None:
    settings = (
        "--slots",
        "1",
        "--set",
        "inputs={hidden_size: 16, max_seq_length: 16, max_steps: 40}",
        "--set",
        "price_per_hour=2.5",
    )
    settings += ("--set", "instance_counts=1,2", "--no-track")
    ended = allranks("run", FILE, *settings, "--json", folder=tmp_path, patience=PATIENCE)
    assert ended.code == 0, ended.err
    steps = {step["name"]: step for step in ended.json["steps"]}
    assert {name: step["status"] for name, step in steps.items()} == dict.fromkeys(steps, "Completed")
    assert [len(steps[f"on_{count}"]["ranks"]) for count in (1, 2)] == [1, 2]
    folder = Path(ended.json["outputs"]["scaling"])
    found = json.loads((folder / "scaling.json").read_text())
    assert [(row["instance_count"], row["world_size"]) for row in found["rows"]] == [(1, 1), (2, 2)]
    assert (found["sample"], found["kind"]) == ("token", "strong")
    for row in found["rows"]:
        assert row["throughput"] > 0
        assert row["samples_per_step"] == 16 * 16
        assert row["cost"] == pytest.approx(1e6 / row["throughput"] / 3600 * row["instance_count"] * 2.5)
    assert "2 instances shared" in found["notes"][0]
    assert not any("at the same time" in note for note in found["notes"])
    page = (folder / "scaling.html").read_text()
    assert page.count("<svg") == 3
    assert found["verdict"] in page


@pytest.mark.recipe
@pytest.mark.timeout(900)
def test_a_training_of_one_s_own_is_studied(tmp_path: Path, own: dict[str, str]) -> None:
    settings = [word for name, value in own.items() for word in ("--set", f"{name}={value}")]
    settings += ["--set", "scaling=weak", "--no-track", "--json"]
    ended = allranks("run", FILE, *settings, folder=tmp_path, patience=PATIENCE)
    assert ended.code == 0, ended.err
    found = json.loads((Path(ended.json["outputs"]["scaling"]) / "scaling.json").read_text())
    assert [(row["world_size"], row["throughput"]) for row in found["rows"]] == [(2, 40), (4, 80), (8, 160)]
    assert (found["kind"], found["stops_at"]) == ("weak", None)
