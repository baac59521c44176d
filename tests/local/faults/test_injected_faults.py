"""Faults that are injected into real ranks of a script that knows nothing of allranks."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.own_variables import ELASTIC_INSTANCES
from allranks.contract.pytorch import PyTorch
from allranks.plan import digest
from allranks.plan.graph import Code, Step
from allranks.plan.ports import Output
from allranks.runs.records import RunRecord, Status

Runner = Callable[..., RunRecord]

# Each rank appends the number of its attempt, and stays until the file of its rank says otherwise.
SCRIPT = """
import os, pathlib, signal, sys, time

folder = pathlib.Path(sys.argv[1])
starts = folder / f"starts_{os.environ['RANK']}"
with open(starts, "a") as file:
    file.write("x")
if "save" in sys.argv:
    def save(*_):
        (folder / f"saved_{os.environ['RANK']}").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, save)
if len(starts.read_text()) > 1 or "ends" in sys.argv:
    sys.exit()
time.sleep(1000)
"""


def _step(folder: Path, arguments: str = "") -> Step:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(SCRIPT)
    code = Code(str(folder / "code"), digest.of_path(folder / "code"))
    command = f"{sys.executable} train.py ${{{{outputs.state}}}} {arguments}"
    outputs = (Output("state", "uri_folder"),)
    return Step("train", command, code=code, distribution=PyTorch(2), instance_count=2, outputs=outputs)


def test_a_killed_rank(tmp_path: Path, kind: str, run_steps: Runner) -> None:
    record = run_steps(_step(tmp_path), instances=kind, faults=["kill:rank=3"])
    train = record.step("train")
    assert train.status is Status.FAILED
    assert (train.verdict.rank, train.verdict.instance_rank, train.verdict.signal) == (3, 1, "SIGKILL")
    assert train.notes == ["SIGKILL sent to rank 3 on instance 1 (injected by --fault kill:rank=3)"]
    assert [fault.fault for fault in record.faults] == ["kill:rank=3"]


def test_an_evicted_instance(tmp_path: Path, kind: str, run_steps: Runner) -> None:
    """The step starts again with its outputs in place, although it has no retries."""
    record = run_steps(_step(tmp_path, "save"), instances=kind, faults=["evict:instance=1,after=500ms"])
    train = record.step("train")
    assert (record.status, train.attempt) == (Status.COMPLETED, 1)
    written = {path.name: path.read_text() for path in Path(train.outputs[0].path).iterdir()}
    assert written == {**{f"starts_{rank}": "xx" for rank in range(4)}, "saved_2": "", "saved_3": ""}
    assert [attempt.status for attempt in train.attempts][:1] == [Status.FAILED]


STEPS = """
import os, pathlib, sys
from allranks.contract import fault_points

for step in range(1, 8):
    with open(pathlib.Path(sys.argv[1], os.environ["RANK"]), "a") as file:
        file.write(f"{step} ")
    fault_points.reached(step)
"""


def test_a_fault_at_a_training_step(tmp_path: Path, run_steps: Runner) -> None:
    """It happens between that step and the next one, and once, although the next attempt reaches the step too."""
    step = _step(tmp_path)
    (tmp_path / "code" / "train.py").write_text(STEPS)
    record = run_steps(step, faults=["kill:rank=3,step=5"], retries=1)
    train = record.step("train")
    assert (record.status, train.attempt, len(record.faults)) == (Status.COMPLETED, 1, 1)
    assert (Path(train.outputs[0].path) / "3").read_text() == "1 2 3 4 5 1 2 3 4 5 6 7 "


ELASTIC = """
import os, pathlib, sys, time

starts = pathlib.Path(sys.argv[1], os.environ["RANK"])
with open(starts, "a") as file:
    file.write(os.environ["WORLD_SIZE"])
if os.environ["WORLD_SIZE"] in sys.argv[2] or len(starts.read_text()) == 1:
    time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("back", "waits_on", "started", "notes"),
    [
        (
            "never",
            "",
            "64",
            ["evicted: it starts again on 2 of 3 instances, with its outputs in place"],
        ),
        (
            "700ms",
            "4",
            "64?6",
            [
                "evicted: it starts again on 2 of 3 instances, with its outputs in place",
                "an instance is back: SIGTERM sent to all ranks",
                "evicted: it starts again, with its outputs in place",
            ],
        ),
    ],
)
def test_an_elastic_step(
    tmp_path: Path, run_steps: Runner, back: str, waits_on: str, started: str, notes: list[str]
) -> None:
    """It continues on fewer instances, and on all of them when the evicted one is back."""
    step = _step(tmp_path, f"'{waits_on}'")
    (tmp_path / "code" / "train.py").write_text(ELASTIC)
    step = replace(step, instance_count=3, environment_variables={ELASTIC_INSTANCES: "2:3"})
    record = run_steps(step, faults=[f"evict:instance=1,after=500ms,back={back}"])
    train = record.step("train")
    assert (record.status, train.instance_count) == (Status.COMPLETED, 2 if back == "never" else 3)
    assert [note for note in train.notes if "injected" not in note] == notes
    # A rank may end before it has written.
    assert re.fullmatch(started, (Path(train.outputs[0].path) / "0").read_text())


def test_too_few_instances_remain(tmp_path: Path, run_steps: Runner) -> None:
    step = replace(_step(tmp_path, "save"), environment_variables={ELASTIC_INSTANCES: "2:2"})
    train = run_steps(step, faults=["evict:instance=1,after=300ms,back=never"]).step("train")
    assert (train.status, train.attempt) == (Status.FAILED, 0)
    expected = "instance 1 was evicted and does not come back: 1 of 2 instances remain, and the step needs 2"
    assert train.verdict.reason == expected
