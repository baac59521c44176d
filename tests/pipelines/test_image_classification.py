"""The image classification pipeline compiles and validates with no network, for every layout and source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiled_jobs import complaints


@pytest.fixture(scope="module")
def pipeline(pipeline_file: Callable[[str], Any]) -> Any:
    """The pipeline function."""
    return pipeline_file("image_classification").image_classification


def test_it_validates_and_names_its_steps(pipeline: Any) -> None:
    job = pipeline()
    assert complaints(job) == {}
    assert list(job.jobs) == ["prepare", "train", "evaluate", "register"]
    assert set(job.outputs) == {"model", "metrics", "registration"}


def test_data_flows_from_step_to_step(pipeline: Any) -> None:
    jobs = pipeline()._to_rest_object().properties.jobs
    bound = {
        (step, name): value["value"]
        for step in ("train", "evaluate", "register")
        for name, value in jobs[step]["inputs"].items()
        if "parent.jobs" in str(value.get("value"))
    }
    assert bound == {
        ("train", "data"): "${{parent.jobs.prepare.outputs.images}}",
        ("evaluate", "data"): "${{parent.jobs.prepare.outputs.images}}",
        ("evaluate", "model"): "${{parent.jobs.train.outputs.model}}",
        ("register", "model"): "${{parent.jobs.train.outputs.model}}",
        ("register", "metrics"): "${{parent.jobs.evaluate.outputs.metrics}}",
    }


def test_the_layout_is_an_input_and_touches_no_other_pipeline(pipeline: Any) -> None:
    first, second = pipeline(instance_count=3), pipeline(processes_per_instance=8)
    for job, layout in ((first, (3, 2)), (second, (2, 8))):
        jobs = job._to_rest_object().properties.jobs
        for step in ("train", "evaluate"):
            assert jobs[step]["resources"]["instance_count"] == "${{parent.inputs.instance_count}}"
            count = jobs[step]["distribution"]["process_count_per_instance"]
            assert count == "${{parent.inputs.processes_per_instance}}"
        inputs = {name: value._data for name, value in job.inputs.items()}
        assert (inputs["instance_count"], inputs["processes_per_instance"]) == layout


def test_a_folder_is_given_as_data(pipeline: Any, tmp_path: Path) -> None:
    from azure.ai.ml import Input

    job = pipeline(source="folder", folder=Input(type="uri_folder", path=str(tmp_path)))
    assert complaints(job) == {}
    assert job.inputs["folder"].path == str(tmp_path)
