"""Recurring training as a user runs it: recurrences on images that keep coming. What the steps make of no new image is
tried in tests/components, at select_new_data, train_image_classifier and promote_model."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from allranks.history.records import RunRecord, Status
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.reader import read_plan
from allranks.workspace import Workspace
from compiled_jobs import complaints

FILE = Path(__file__).resolve().parents[2] / "pipelines" / "recurring_training.py"
MODEL = "recurring-image-classifier"
TRIGGERED = "${{creation_context.trigger_time}}"
STEPS = ["champion", "select", "train", "evaluate", "promote"]


@pytest.fixture(scope="module")
def pipeline(pipeline_file: Callable[[str], ModuleType]) -> ModuleType:
    return pipeline_file("recurring_training")


def test_it_validates_and_names_its_steps(pipeline: Any) -> None:
    job = pipeline.recurring_training()
    assert complaints(job) == {}
    assert list(job.jobs) == STEPS
    assert set(job.outputs) == {"model", "metrics", "registration"}


def test_champion_and_challenger_are_scored_in_one_step_on_the_same_images(pipeline: Any) -> None:
    jobs = pipeline.recurring_training()._to_rest_object().properties.jobs
    bound = {name: value.get("value") for name, value in jobs["evaluate"]["inputs"].items()}
    assert bound == {
        "data": "${{parent.jobs.select.outputs.images}}",
        "model": "${{parent.jobs.train.outputs.model}}",
        "baseline": "${{parent.jobs.champion.outputs.model}}",
    }


@pytest.mark.parametrize("place", [None, "azureml://datastores/labelled/paths/images"], ids=["digits", "a datastore"])
def test_the_schedule_gives_the_firing_s_time_and_the_data(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch, place: str | None
) -> None:
    monkeypatch.delenv("LABELLED_IMAGES", raising=False)
    if place:
        monkeypatch.setenv("LABELLED_IMAGES", place)
    job = pipeline.weekly().create_job
    inputs = job._to_rest_object().properties.inputs
    assert inputs["trigger_time"].value == TRIGGERED
    assert inputs["source"].value == ("folder" if place else "digits")
    assert getattr(inputs.get("folder"), "uri", None) == place


class Recurrences:
    """A folder to which images come, and the recurrences on it."""

    def __init__(self, folder: Path) -> None:
        self.incoming = folder / "incoming"
        self.workspace = Workspace(folder / ".allranks")

    def deliver(self, batch: str, first: int, last: int) -> None:
        """Digits of scikit-learn's come."""
        from PIL import Image
        from sklearn.datasets import load_digits

        digits = load_digits()
        for number in range(first, last):
            place = self.incoming / str(digits.target[number]) / batch
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray((digits.images[number] * 15).astype("uint8")).save(place / f"{number}.png")

    def recur(self, day: int) -> RunRecord:
        """One recurrence, fired at midnight of that day."""
        settings = {"source": "folder", "folder": str(self.incoming), "image_size": "8", "trigger_time": TRIGGERED}
        settings |= {"num_train_epochs": "4", "learning_rate": "0.004", "margin": "0.01"}
        settings |= {"instance_count": "1", "processes_per_instance": "1"}
        fired = datetime(2026, 1, day, tzinfo=UTC)
        options = Options(instances="loopback", trigger_time=fired, run_name=f"recurrence-{day}")
        return run(read_plan(str(FILE), settings, self.workspace.snapshots), self.workspace, options)

    def versions(self) -> dict[str, dict[str, str]]:
        """The tags of each registered version."""
        from mlflow import MlflowClient

        client = MlflowClient(self.workspace.tracking_uri, self.workspace.tracking_uri)
        return {str(found.version): found.tags for found in client.search_model_versions(f"name='{MODEL}'")}


def outcome(record: RunRecord) -> dict[str, Any]:
    """registration.json of a recurrence, all of whose steps completed."""
    states = {step.name: (step.status, step.verdict) for step in record.steps}
    assert states == dict.fromkeys(STEPS, (Status.COMPLETED, None))
    return dict(json.loads(Path(record.outputs["registration"], "registration.json").read_text()))


@pytest.fixture
def recurrences(tmp_path: Path) -> Recurrences:
    return Recurrences(tmp_path)


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(900)
def test_it_learns_from_what_is_new_and_registers_what_is_better(recurrences: Recurrences) -> None:
    recurrences.deliver("first", 0, 500)
    first_run = recurrences.recur(5)
    first = outcome(first_run)
    assert (first["version"], first["champion"]) == ("1", None)
    assert 300 < first["new_images"] < 400

    recurrences.deliver("second", 500, 1400)
    second_run = recurrences.recur(12)
    second = outcome(second_run)
    assert (second["version"], second["champion_version"]) == ("2", "1")
    assert second["challenger"] >= second["champion"] + 0.01
    assert second["new_images"] < 700  # of the second batch alone
    loss = [record.step("train").metrics["train_loss"][0].value for record in (first_run, second_run)]
    assert loss[1] < loss[0] / 2  # it begins where the champion ended

    versions = recurrences.versions()
    assert sorted(versions) == ["1", "2"]
    lineage = versions["2"]
    assert lineage["code"]
    assert lineage["code"] == versions["1"]["code"]
    assert lineage["data_version"] == second["data_version"] != first["data_version"]
    assert int(lineage["trained_on_images"]) == first["new_images"] + second["new_images"]
    assert lineage["parent_run"] == second_run.id
    assert lineage["run"] == second_run.step("promote").mlflow_run_id
    assert lineage["champion_version"] == "1"
    assert lineage["champion_accuracy"] == f"{second['champion']:.4f}"
    assert lineage["accuracy"] == f"{second['challenger']:.4f}"
    assert lineage["trigger_time"] == "2026-01-12 00:00:00"
