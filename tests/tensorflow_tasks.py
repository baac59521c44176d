"""Tasks of a TensorFlow training as real processes, in TensorFlow's own environment."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import bounded
from allranks.contract import report
from free_ports import free_port

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venvs/allranks-tensorflow/bin/python"
BOUND_SECONDS = 200
CLEARED = ("TF_", "AZUREML_", "AZ_BATCH", "MLFLOW_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_")

needs_tensorflow = pytest.mark.skipif(not PYTHON.exists(), reason="no TensorFlow here: make tensorflow")


@dataclass(frozen=True)
class Ended:
    """How a task ended."""

    code: int
    output: str
    errors: str
    events: tuple[report.Event, ...]

    def of(self, kind: type[report.Event]) -> list[report.Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def losses(self) -> list[float]:
        found = [event.metrics for event in self.events if isinstance(event, report.Progress)]
        return [metrics["train_loss"] for metrics in found if "train_loss" in metrics]


def cluster(**counts: int) -> dict[str, list[str]]:
    """So many tasks of each role at free ports of this machine."""
    return {role: [f"127.0.0.1:{free_port()}" for _ in range(count)] for role, count in counts.items()}


def start(
    folder: Path,
    task: str,
    tasks: Mapping[str, Sequence[str]],
    script: Path,
    *arguments: object,
    path: Sequence[Path] = (),
    **launch: str,
) -> subprocess.Popen[bytes]:
    """Start a task, "worker-0", of the cluster; of no cluster, a process on its own. Its files are in the folder."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED)}
    variables |= {
        "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT / "src", ROOT / "components/shared"))),
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "TF_ENABLE_ONEDNN_OPTS": "1",  # the default of newer processors alone: this is found on every machine
        report.VARIABLE: str(folder / f"{task}.report"),
    }
    variables |= launch
    if tasks:
        role, _, index = task.partition("-")
        config = {"cluster": tasks, "task": {"type": role, "index": int(index)}, "environment": "cloud"}
        variables["TF_CONFIG"] = json.dumps(config)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{task}.out").open("wb") as out, (folder / f"{task}.err").open("wb") as err:
        command = [str(PYTHON), str(script), *map(str, arguments)]
        return bounded.Popen(command, env=variables, cwd=folder, stdout=out, stderr=err)


def finish(folder: Path, processes: Mapping[str, subprocess.Popen[bytes]]) -> dict[str, Ended]:
    """Wait for the tasks, by name; none is left."""
    try:
        for process in processes.values():
            process.wait(BOUND_SECONDS)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return {
        task: Ended(
            process.returncode,
            (folder / f"{task}.out").read_text(),
            (folder / f"{task}.err").read_text(),
            tuple(report.read(folder / f"{task}.report")[0]),
        )
        for task, process in processes.items()
    }
