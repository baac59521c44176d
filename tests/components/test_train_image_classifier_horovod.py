"""The image classifier's training under mpirun, with Horovod, on the local engine."""

import importlib.util
from pathlib import Path

import pytest
import yaml

from allranks.history.records import Status
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.reader import read_plan
from allranks.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[2]
COMPONENTS = PROJECT / "components"


@pytest.mark.slow
@pytest.mark.recipe  # the tests of strategies, of mpirun and of ports show the parts
@pytest.mark.skipif(importlib.util.find_spec("horovod") is None, reason="no Horovod: make horovod")
def test_it_trains_by_horovod(tmp_path: Path, digits: Path) -> None:
    pipeline = {
        "type": "pipeline",
        "jobs": {
            "train": {
                "type": "command",
                "component": str(
                    COMPONENTS
                    / "image_classification/train_image_classifier/train_image_classifier_horovod"
                    / "component.yaml"
                ),
                "inputs": {
                    "data": {"type": "uri_folder", "path": str(digits)},
                    "model": "resnet_micro",
                    "num_train_epochs": 2,
                },
                # On several instances, Horovod is tried in tests/docs/test_stacks.py.
                "distribution": {"type": "mpi", "process_count_per_instance": 2},
            }
        },
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline), encoding="utf-8")
    plan = read_plan(str(file), {}, tmp_path / "snapshots")
    record = run(plan, Workspace(tmp_path / "workspace"), Options(track=False))
    (step,) = record.steps
    assert record.status is Status.COMPLETED, step.verdict
    assert [rank.status for rank in step.ranks] == [Status.COMPLETED] * 2
    losses = [point.value for point in step.metrics["train_loss"]]
    assert losses[-1] < 0.7 * losses[0]
    (model,) = (output for output in step.outputs if output.name == "model")
    assert (Path(model.path) / "MLmodel").exists()
