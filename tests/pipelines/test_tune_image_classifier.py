"""The pipeline with a sweep as a user runs it: it trains at 2x2, stops early and registers the best model."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.plan.graph import Sweep
from allranks.plan.reader import read_plan
from allranks_command import allranks

PIPELINE = Path(__file__).resolve().parents[2] / "pipelines" / "tune_image_classifier.py"
PATIENCE = 900.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""


def test_its_trials_train_on_two_instances(tmp_path: Path) -> None:
    tune = read_plan(str(PIPELINE), {}, tmp_path).graph.by_name["tune"]
    assert isinstance(tune, Sweep)
    assert (tune.body.distribution, tune.body.instance_count) == (PyTorch(2), 2)
    assert tune.early_termination is not None


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(1800)
def test_the_model_of_the_best_trial_is_registered(tmp_path: Path) -> None:
    # One trial after another, so that each is compared with the same ones on every machine.
    ended = allranks("run", PIPELINE, "--slots", 4, "--json", folder=tmp_path, patience=PATIENCE)
    assert ended.code == 0, ended.err
    run: dict[str, Any] = ended.json
    steps = {step["name"]: step for step in run["steps"]}
    trials = [steps[f"tune.trial[{number}]"] for number in range(4)]
    states = {trial["status"] for trial in trials}
    assert states <= {"Completed", "Canceled"}
    stopped = [trial for trial in trials if trial["status"] == "Canceled"]
    assert stopped  # the second point of the sequence has a learning rate that is too high
    assert all("stopped by bandit" in trial["notes"][0] for trial in stopped)
    assert {len(trial["ranks"]) for trial in trials} == {4}
    best = steps["tune"]["result"].split()[1]
    (model,) = (output for output in steps["tune"]["outputs"] if output["name"] == "model")
    assert f"/tune/trial/{best}/" in model["path"]
    assert run["outputs"]["model"] == model["path"]
    assert steps["register"]["status"] == "Completed"
    with sqlite3.connect(tmp_path / ".allranks" / "mlflow.db") as models:
        assert models.execute("SELECT name, version FROM model_versions").fetchall() == [("tuned-image-classifier", 1)]
