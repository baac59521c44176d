"""The pipeline as a user runs it: on 2 emulated instances x 2 processes, from images to a registered model."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import psutil
import pytest

from allranks_command import allranks, started

PIPELINE = Path(__file__).resolve().parents[2] / "pipelines" / "image_classification.py"
PATIENCE = 600.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.recipe  # the tests of killed processes and of the wheel show the parts
def test_from_images_to_a_registered_model_though_the_engine_is_killed_on_the_way(tmp_path: Path) -> None:
    """One run for all: killed in the middle of training, resumed to its end, and reused by a second one."""
    shown = killed_in_training(tmp_path)
    resumed = allranks("resume", "latest", "--json", folder=tmp_path, patience=PATIENCE)
    assert resumed.code == 0, resumed.err
    run = resumed.json
    before, steps = ({step["name"]: step for step in found["steps"]} for found in (shown, run))
    assert steps["prepare"] == before["prepare"]
    assert steps["train"]["attempt"] == before["train"]["attempt"] + 1

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
    # The second attempt goes on from the last checkpoint, which a validation has saved.
    first, *_ = before["train"]["metrics"]["train_loss"]
    *_, last = steps["train"]["metrics"]["train_loss"]
    assert last["value"] < first["value"] / 5

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


def killed_in_training(folder: Path) -> Any:
    """The record of a run whose engine was killed as soon as training had reported progress."""
    with started("run", PIPELINE, folder=folder) as engine:
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
    shown = allranks("show", "latest", "--json", folder=folder, patience=PATIENCE).json
    assert shown["status"] == "Interrupted"
    return shown
