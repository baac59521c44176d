"""Failures of which a user of emulated instances may not guess the cause: the run says what to do."""

import sys
import tempfile
from pathlib import Path

import pytest

from allranks.history.formatting import what_to_do
from allranks.history.records import RunRecord, Status
from allranks.plan.graph import Step


def python(code: str) -> str:
    """A command, of an interpreter without its packages: it starts at once."""
    return f'{sys.executable} -I -S -c "{code}"'


def advice(record: RunRecord) -> str:
    """The advice on the step, which failed."""
    (step,) = record.steps
    assert step.status is Status.FAILED
    assert step.verdict is not None
    return what_to_do(step.verdict)


def test_a_stack_that_the_step_s_python_lacks(run_steps) -> None:
    assert "has no horovod; to get it: make horovod" in advice(run_steps(Step("train", python("import horovod.torch"))))


def test_the_network_outside_of_the_rack(rack_works: bool, run_steps) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    download = python("import socket; socket.create_connection(('192.0.2.1', 80), 5)")
    assert "--instances loopback" in advice(run_steps(Step("download", download), instances="rack", offline=True))


def test_a_temporary_folder_too_deep_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_steps) -> None:
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    bind = python("import os, socket; socket.socket(socket.AF_UNIX).bind(os.environ['TMPDIR'] + '/store')")
    assert "set TMPDIR to a shorter one" in advice(run_steps(Step("serve", bind)))


def test_a_disk_that_is_full_while_torch_saves(rack_works: bool, run_steps) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    save = "import torch; torch.save(torch.zeros(10**6), '/mnt/model.pt')"
    command = f'mount -t tmpfs -o size=1m none /mnt && {sys.executable} -c "{save}"'
    record = run_steps(Step("train", command), instances="rack")
    assert "a disk was full" in advice(record)
    assert "allranks why disk-full" in advice(record)


def test_another_failure_has_none(run_steps) -> None:
    assert advice(run_steps(Step("train", python("1 / 0")))) == ""
