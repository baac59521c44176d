"""Ranks of scripts that know nothing of allranks, and hang: the step fails and names the rank that is not there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.history.records import RunRecord, Status
from allranks.local import stack_dumps
from allranks.local.attempt import stall
from allranks.local.attempt.stall import only_retries
from allranks.plan import digest
from allranks.plan.graph import Code, Step

Runner = Callable[..., RunRecord]

MPI = """
import sys, time
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == comm.size - 2 and "sleep" in sys.argv:
    time.sleep(1000)
if comm.rank == 1 and "raise" in sys.argv:
    raise ValueError("bad shard")
comm.barrier()
"""
TORCH = """
import os, sys, time
from datetime import timedelta
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=float(sys.argv[1])))
if dist.get_rank() == 1:
    time.sleep(1000)
dist.barrier()
"""
GIL = """
import ctypes
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    ctypes.PyDLL(None).sleep(1000)
dist.barrier()
"""
PACE = """
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(150):
    dist.all_reduce(torch.ones(4, 2))
if dist.get_rank() == 1:
    time.sleep(1000)
dist.barrier()
"""

SILENT = """
import os, sys
sys.path.insert(0, os.getcwd())
from tensorflow.python.eager.execute import quick_execute

quick_execute(7)
"""
EXECUTE = """
import hashlib, threading, time


def quick_execute(seconds):
    def compute(end):
        while time.monotonic() < end:
            hashlib.sha256(bytes(1 << 24)).digest()
            time.sleep(0.1)

    thread = threading.Thread(target=compute, args=(time.monotonic() + seconds,))
    thread.start()
    thread.join()
"""


def _step(folder: Path, script: str, arguments: str, distribution: Mpi | PyTorch) -> Step:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(script)
    code = Code(str(folder / "code"), digest.of_path(folder / "code"))
    command = f"python train.py {arguments}"
    return Step("train", command, code=code, distribution=distribution, instance_count=2)


def test_a_rank_that_never_reaches_a_collective(tmp_path: Path, run_steps: Runner) -> None:
    step = _step(tmp_path, MPI, "sleep", Mpi(2))
    record = run_steps(step, stall=2.0)
    verdict = record.step("train").verdict
    assert (record.status, verdict.rank, verdict.where) == (Status.FAILED, 2, "train.py:7")
    assert "ranks 0, 1 and 3 wait for it in barrier" in verdict.reason


def test_a_rank_that_has_raised_and_does_not_end(tmp_path: Path, run_steps: Runner) -> None:
    """mpi4py waits for the others when the interpreter exits."""
    record = run_steps(_step(tmp_path, MPI, "raise", Mpi(1)), cold=True)
    verdict = record.step("train").verdict
    assert (verdict.rank, verdict.reason, verdict.where) == (1, "ValueError: bad shard", "train.py:9")


def test_a_rank_that_holds_the_gil(tmp_path: Path, run_steps: Runner) -> None:
    pytest.importorskip("torch")
    verdict = run_steps(_step(tmp_path, GIL, "", PyTorch(1)), stall=2.0).step("train").verdict
    assert (verdict.rank, verdict.where) == (1, "train.py:7")
    assert "it holds the GIL at `ctypes.PyDLL(None).sleep(1000)`, and rank 0 wait" in verdict.reason
    assert not list(tmp_path.rglob("*.request"))


def test_without_py_spy_ranks_with_torch_write_their_own_stacks(
    tmp_path: Path, run_steps: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    spy = tmp_path / "py-spy"
    spy.write_text("#!/bin/sh\necho 'Error: Permission Denied (os error 13)' >&2; exit 1\n")
    spy.chmod(0o755)
    monkeypatch.setattr(stack_dumps, "program", lambda: str(spy))
    record = run_steps(_step(tmp_path, TORCH, "1000", PyTorch(1)), stall=2.0).step("train")
    assert (record.verdict.rank, record.verdict.where) == (1, "train.py:8")
    assert "it is at `time.sleep(1000)`, and rank 0 waits for it in barrier" in record.verdict.reason
    assert [note for note in record.notes if "ptrace_scope" in note]


RETRIES = """\
[W1126 13:06:27.1 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host 198.51.100.7:6105 - retrying
Exception raised from ping at /pytorch/torch/csrc/distributed/c10d/TCPStore.cpp:427 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x80 (0x7f39820c2305 in libc10.so)

[W1126 13:06:30.2 socket.cpp:764] [c10d] The client socket has failed to connect to [::ffff:10.0.0.4]:6105 (errno: 111)
"""


@pytest.mark.parametrize(("text", "expected"), [(RETRIES, True), (RETRIES + "epoch 3: loss 0.2\n", False)])
def test_tries_to_connect_again_are_no_progress(text: str, expected: bool) -> None:
    assert only_retries(text.splitlines()) is expected


@pytest.mark.recipe
def test_the_pace_of_a_training_shortens_the_time(
    tmp_path: Path, run_steps: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(stall, "COMPARE", 0.5)
    monkeypatch.setattr(stall, "SHORTEST", 1.0)
    monkeypatch.setattr(stall, "IDLE_CPU", 0.5)
    verdict = run_steps(_step(tmp_path, PACE, "", PyTorch(1)), stall=1000.0).step("train").verdict
    assert (verdict.rank, verdict.where) == (1, "train.py:10")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({1: (2.1, 5000), 2: (3.0, 0)}, True),
        ({1: (3.0, 5000), 2: (3.0, 0)}, False),
        ({1: (2.0, 5000), 2: (3.0, 2 << 20)}, False),
        ({1: (2.0, 5000)}, False),
        ({}, False),
    ],
    ids=["idle", "an evaluation", "a checkpoint", "a process has ended", "unknown"],
)
def test_ranks_that_compute_or_write_keep_their_time(after: dict[int, tuple[float, int]], expected: bool) -> None:
    assert stall._is_idle({1: (2.0, 0), 2: (3.0, 0)}, after, 10.0) is expected


def test_ranks_that_compute_in_silence_do_not_hang(tmp_path: Path, run_steps: Runner) -> None:
    """Threads of TensorFlow compute, while the main thread waits for them at the same line."""
    step = _step(tmp_path, SILENT, "", PyTorch(1))
    package = tmp_path / "code" / "tensorflow" / "python" / "eager"
    package.mkdir(parents=True)
    (package / "execute.py").write_text(EXECUTE)
    step = replace(step, code=Code(step.code.folder, digest.of_path(tmp_path / "code")))
    record = run_steps(step, stall=2.0)
    assert record.status is Status.COMPLETED, record.step("train").verdict
