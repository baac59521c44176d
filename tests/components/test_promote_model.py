"""promote_model: the decision, and what becomes of a registry."""

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError

Importer = Callable[[str, str], Any]

pytestmark = pytest.mark.xdist_group("registry")  # one process imports MLflow and makes its tables


@pytest.mark.parametrize(
    ("challenger", "champion", "new", "rules", "promoted", "reason"),
    [
        (0.9, None, 5, {}, True, "there is no champion yet"),
        (0.9, 0.8, 5, {}, True, "accuracy 0.9000 against the champion's 0.8000 is better"),
        (0.8, 0.8, 5, {}, False, "is no better"),
        (0.7, 0.8, 5, {}, False, "is no better"),
        (0.9, 0.8, 0, {}, False, "there is no new data"),
        (0.82, 0.8, 5, {"margin": 0.05}, False, "is not better by 0.0500"),
        (36 / 40, 35 / 40, 5, {"margin": 0.025}, True, "is better"),
        (0.9, 0.8, 5, {"threshold": 0.95}, False, "below the minimum of 0.9500"),
        (0.9, None, 5, {"threshold": 0.95, "metric": ("macro_f1", "maximize")}, False, "macro_f1 0.9000 is below"),
        (0.9, 0.8, None, {}, True, "is better"),
        (0.9, 0.8, 5, {"metric": ("loss", "minimize")}, False, "is no better"),
        (0.7, 0.8, 5, {"metric": ("loss", "minimize"), "margin": 0.05}, True, "loss 0.7000 against"),
        (0.7, None, 5, {"metric": ("loss", "minimize"), "threshold": 0.6}, False, "above the maximum of 0.6000"),
        (0.7, 0.7 - 1e-16, 5, {}, False, "is no better"),
    ],
)
def test_the_better_one_wins(
    code: Importer,
    challenger: float,
    champion: float | None,
    new: int | None,
    rules: dict[str, Any],
    promoted: bool,
    reason: str,
) -> None:
    decision = code("promote_model", "decision")
    metric = decision.Metric(*rules.get("metric", ()))
    bounds = {name: value for name, value in rules.items() if name != "metric"}
    decided, said = decision.decide(metric, challenger, champion, new=new, **bounds)
    assert decided is promoted
    assert reason in said


@dataclass
class Given:
    """The component's inputs, to be changed by a test, and its code."""

    folder: Path
    script: Any

    def write(self, file: str, /, **content: Any) -> None:
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))

    def scores(self, challenger: float, champion: float | None, version: str | None) -> None:
        baseline = None if champion is None else {"accuracy": champion}
        self.write("metrics/metrics.json", split="test", count=40, accuracy=challenger, baseline=baseline)
        self.write("champion/champion.json", name="digits", version=version)

    def promote(self, **changed: Any) -> Any:
        inputs = {name: self.folder / name for name in ("model", "metrics", "champion", "selection", "registration")}
        inputs |= {"name": "digits", "metric": "accuracy", "goal": "maximize", "margin": 0.0, "threshold": None}
        inputs |= {"trigger_time": None, "code_version": None}
        return self.script.promote(Namespace(**(inputs | changed)))


@pytest.fixture
def given(code: Importer, tmp_path: Path) -> Given:
    """A challenger with nobody to beat."""
    found = Given(tmp_path, code("promote_model", "promote_model"))
    found.write("model/MLmodel", flavors={"python_function": {"loader_module": "none"}}, metadata={"code": "c0de"})
    found.write("model/trained_on.json", classes=[], images={"old": "a"})
    about = {"source": "folder", "new": 7, "held_out": 40, "trained_on": 30, "data_version": "da7a"}
    found.write("selection/selection.json", **about, held_out_version="0e1d")
    found.write("selection/trained_on.json", classes=["a"], images={"old": "a", "new": "a"})
    found.scores(0.9, None, None)
    return found


def versions(address: str) -> dict[str, dict[str, str]]:
    from mlflow import MlflowClient

    found = MlflowClient(address, address).search_model_versions("name='digits'")
    return {str(version.version): version.tags for version in found}


@pytest.mark.slow
def test_a_challenger_that_wins_is_the_next_version_with_its_lineage(
    given: Given, registry_address: str, code: Importer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AZUREML_ROOT_RUN_ID", "monday")
    assert given.promote(trigger_time="2026-01-05 01:30:00")["version"] == "1"
    monkeypatch.setenv("AZUREML_ROOT_RUN_ID", "next_monday")
    given.scores(0.95, 0.9, "1")
    said = given.promote(code_version="4948913")
    assert said == json.loads((tmp_path / "registration/registration.json").read_text())
    assert (said["promoted"], said["version"], said["champion_version"]) == (True, "2", "1")
    first, second = (versions(registry_address)[number] for number in "12")
    always = {
        "data": "folder",
        "data_version": "da7a",
        "held_out_version": "0e1d",
        "new_images": "7",
        "trained_on_images": "30",
        "held_out_images": "40",
        "code": "c0de",
    }
    for found in (first, second):
        assert found.pop("run")
    assert first == {
        **always,
        "accuracy": "0.9000",
        "parent_run": "monday",
        "trigger_time": "2026-01-05 01:30:00",
    }
    assert second == {
        **always,
        "accuracy": "0.9500",
        "champion_accuracy": "0.9000",
        "champion_version": "1",
        "parent_run": "next_monday",
        "code_version": "4948913",
    }
    # What the next recurrence fetches says what it was trained on.
    code("get_champion", "get_champion").get_champion("digits", tmp_path / "fetched", tmp_path / "about")
    assert json.loads((tmp_path / "fetched/trained_on.json").read_text())["images"] == {"old": "a", "new": "a"}


@pytest.mark.slow
def test_data_that_nobody_selected_needs_no_selection(given: Given, registry_address: str) -> None:
    given.write("metrics/metrics.json", source="tables", accuracy=0.9, baseline=None)
    assert given.promote(selection=None)["version"] == "1"
    (tags,) = versions(registry_address).values()
    assert tags.pop("run")
    assert tags == {"accuracy": "0.9000", "code": "c0de", "data": "tables"}


@pytest.mark.slow
def test_one_that_does_not_leaves_the_registry_as_it_is(given: Given, registry_address: str) -> None:
    given.promote()
    given.scores(0.85, 0.9, "1")
    said = given.promote()
    assert (said["promoted"], said["version"]) == (False, None)
    assert said["reason"] == "accuracy 0.8500 against the champion's 0.9000 is no better"
    assert list(versions(registry_address)) == ["1"]


@pytest.mark.recipe
def test_a_champion_with_which_nobody_compared_stays(given: Given, registry_address: str) -> None:
    given.promote()
    said = given.promote()  # it knows of no champion, as at first
    assert (said["promoted"], said["version"]) == (False, None)
    assert "version 1 is the champion by now" in said["reason"]
    assert list(versions(registry_address)) == ["1"]


@pytest.mark.slow
def test_a_step_that_is_tried_again_registers_nothing_twice(
    given: Given, registry_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZUREML_ROOT_RUN_ID", "monday")
    assert given.promote()["version"] == "1"
    again = given.promote()
    assert (again["promoted"], again["version"]) == (True, "1")
    assert list(versions(registry_address)) == ["1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda given: (given.folder / "model/MLmodel").unlink(), "holds no file MLmodel"),
        (lambda given: (given.folder / "metrics/metrics.json").unlink(), "cannot be read"),
        (lambda given: given.write("metrics/metrics.json", split="test", count=40, accuracy=1.0), "lacks baseline"),
        (lambda given: given.scores(0.9, 0.8, None), "do not belong together"),
        (lambda given: given.scores(0.9, None, "3"), "do not belong together"),
        (lambda given: given.write("selection/selection.json", new=3), "lacks held_out, data_version"),
        (
            lambda given: given.write("metrics/metrics.json", split="test", count=39, accuracy=1.0, baseline=None),
            "39 images of test were scored, and 40 are held out",
        ),
    ],
    ids=["no model", "no metrics", "no baseline", "no version", "no score", "another selection", "other images"],
)
def test_what_does_not_fit_together_is_refused(
    given: Given, monkeypatch: pytest.MonkeyPatch, change: Callable[[Given], Any], said: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///nowhere.db")
    change(given)
    with pytest.raises(InputError, match=said):
        given.promote()
    assert not (given.folder / "registration").exists()


def test_without_a_registry_nothing_is_decided(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(InputError, match="MLFLOW_TRACKING_URI: it is not set"):
        given.promote()
