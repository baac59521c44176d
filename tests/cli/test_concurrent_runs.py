"""Two runs at once in one folder: both complete, and share the slots and GPUs of this machine."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from allranks.history import stored
from allranks.history.records import Status
from allranks.workspace import Workspace
from allranks_command import Ended, forked, write

USE = """\
exec 8> {locks}/gpu-$CUDA_VISIBLE_DEVICES; flock -n 8 || exit 3
exec 9> {locks}/slot-0; flock -n 9 || {{ exec 9> {locks}/slot-1; flock -n 9; }} || exit 4
sleep 0.05; echo $CUDA_VISIBLE_DEVICES
"""
"""Locks the GPU that the step was given and one of the two slots, and fails where another step has them."""


@pytest.fixture
def gpus() -> Iterator[dict[str, str]]:
    return {"CUDA_VISIBLE_DEVICES": "0,1"}


def write_pipeline(folder: Path, name: str, locks: Path, steps: int = 3) -> None:
    command = USE.format(locks=locks) + f": {name}"  # what runs at the same time must not be a result to reuse
    job = {"type": "command", "command": command, "environment": "azureml:cpu:1"}
    pipeline = {"type": "pipeline", "jobs": {f"s{number}": job for number in range(steps)}}
    write(folder, f"{name}.yml", json.dumps(pipeline))


@pytest.mark.slow
def test_two_runs_at_once_in_one_folder(tmp_path: Path, gpus: dict[str, str]) -> None:
    """They make its workspace and store at the same time."""

    def run(name: str) -> Ended:
        options = ("--no-track", "--instances", "loopback", "--slots", "2", "--force-rerun", "--json")
        return forked("run", f"{name}.yml", *options, folder=tmp_path, **gpus)

    locks = tmp_path / "locks"
    locks.mkdir()
    for name in ("one", "two"):
        write_pipeline(tmp_path, name, locks)
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(run, ["one", "two"]))
    assert [(done.code, "Traceback" in done.err) for done in ended] == [(0, False)] * 2, ended
    records = stored.runs(Workspace(tmp_path / ".allranks"))
    assert {record.name for record in records} == {"one", "two"}
    steps = [step for record in records for step in record.steps]
    assert [step.status for step in steps] == [Status.COMPLETED] * 6
    assert {Path(step.ranks[0].log).read_text().strip() for step in steps} <= {"0", "1"}
