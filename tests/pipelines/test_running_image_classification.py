"""The pipeline as a user runs it: on 2 emulated instances x 2 processes, from images to a registered model."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import psutil
import pytest

from allranks_command import allranks, started

PIPELINE = Path(__file__).resolve().parents[2] / "pipelines" / "image_classification.py"
PATIENCE = 600.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_images_to_a_registered_model_and_what_a_second_run_reuses(tmp_path: Path) -> None:
    first = allranks("run", PIPELINE, "--json", folder=tmp_path, patience=PATIENCE)
    assert first.code == 0, first.err
    run = first.json
    steps = {step["name"]: step for step in run["steps"]}
    assert {name: step["status"] for name, step in steps.items()} == dict.fromkeys(steps, "Completed")
    assert list(steps) == ["prepare", "train", "evaluate", "register"]
    assert [(rank["instance_rank"], rank["local_rank"]) for rank in steps["train"]["ranks"]] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    (accuracy,) = steps["evaluate"]["metrics"]["test_accuracy"]
    assert accuracy["value"] >= 0.97
    loss = [point["value"] for point in steps["train"]["metrics"]["train_loss"]]
    assert loss[-1] < loss[0] / 5

    page = Path(run["page"]).read_text()
    for part in ("<svg", "Learning curves", "Confusion matrix", "Timeline", "test_accuracy"):
        assert part in page

    registration = json.loads(next(Path(run["outputs"]["registration"]).rglob("*.json")).read_text())
    with sqlite3.connect(tmp_path / ".allranks" / "mlflow.db") as models:
        found = models.execute("SELECT name, version FROM model_versions").fetchall()
    assert found == [(registration["name"], int(registration["version"]))]

    second = allranks("run", PIPELINE, folder=tmp_path, patience=PATIENCE)
    assert second.code == 0
    assert f"reused from {run['id']}" in second.out


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_engine_is_killed_in_the_middle_of_training_and_the_run_is_resumed(tmp_path: Path) -> None:
    settings = ("--set", "epochs=4", "--set", "model_name=resumed")
    with started("run", PIPELINE, *settings, folder=tmp_path) as engine:
        assert engine.stdout is not None
        for line in engine.stdout:
            if "train" in line and "progress" in line:
                break
        else:
            pytest.fail("training never reported progress")
        below = psutil.Process(engine.pid).children(recursive=True)
        assert len(below) >= 4
        engine.kill()
        _, alive = psutil.wait_procs(below, timeout=PATIENCE)
        assert alive == []

    shown = allranks("show", "latest", "--json", folder=tmp_path, patience=PATIENCE).json
    assert shown["status"] == "Interrupted"
    resumed = allranks("resume", "latest", "--json", folder=tmp_path, patience=PATIENCE)
    assert resumed.code == 0, resumed.err
    before, after = ({step["name"]: step for step in run["steps"]} for run in (shown, resumed.json))
    assert after["prepare"] == before["prepare"]
    assert after["train"]["attempt"] == before["train"]["attempt"] + 1
    assert {step["status"] for step in after.values()} == {"Completed"}
