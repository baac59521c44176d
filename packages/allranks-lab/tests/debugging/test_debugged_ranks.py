"""Ranks that a client of debugpy, or pdb on a terminal, stops and continues."""

import importlib.util
import io
import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dap_client import Client

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.plan import digest
from allranks.plan.graph import Code, Step
from allranks_lab.debugging.session import DebugSession

pytestmark = pytest.mark.slow
Runner = Callable[..., RunRecord]

SCRIPT = """
import os
rank = int(os.environ["RANK"])
shard = f"shard {rank}"
print("read", shard)
"""


@pytest.fixture
def step(tmp_path: Path) -> Step:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    code = Code(str(tmp_path / "code"), digest.of_path(tmp_path / "code"))
    command = f"{sys.executable} train.py"
    return Step("train", command, code=code, distribution=PyTorch(2), instance_count=2, timeout=3.0)


class Debugs(Observer):
    """Calls a function with the port in a thread of its own when a rank waits for a debugger."""

    def __init__(self, client: Callable[[int], Any]) -> None:
        self._client = client
        self.notes: list[str] = []
        self.result: Any = None
        self._thread: threading.Thread | None = None

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:
        self.notes.append(text)
        if port := re.search(r"for a debugger on 127\.0\.0\.1:(\d+)", text):
            self._thread = threading.Thread(target=self._debug, args=(int(port[1]),), daemon=True)
            self._thread.start()

    def ended(self, run: RunRecord) -> None:
        assert self._thread is not None, self.notes
        self._thread.join(60)
        if isinstance(self.result, BaseException):
            raise self.result

    def _debug(self, port: int) -> None:
        try:
            self.result = self._client(port)
        except BaseException as error:
            self.result = error


def session(*ranks: int, **options: Any) -> DebugSession:
    spec = importlib.util.find_spec("debugpy")
    assert spec is not None
    assert spec.origin is not None
    return DebugSession("train", ranks or None, debugpy=os.path.dirname(spec.origin), **options)


def log(record: RunRecord, rank: int) -> str:
    return Path(record.step("train").ranks[rank].log).read_text()


def test_a_client_sets_a_breakpoint_reads_a_variable_and_continues(
    tmp_path: Path, kind: str, step: Step, run_steps: Runner
) -> None:
    file = str(tmp_path / "code" / "train.py")

    def debug(port: int) -> tuple[object, ...]:
        client = Client(port, {file: [5]}, str(tmp_path / "code"))
        thread = client.event("stopped")["threadId"]
        found = client.where(thread), client.value("shard")
        client.value("exec('shard = 1')")
        client.request("continue", threadId=thread)
        client.event("terminated")
        client.close()
        return found

    observer = Debugs(debug)
    record = run_steps(step, instances=kind, debug=session(3), observer=observer)
    assert observer.result == ((file, 5), "'shard 3'")
    assert record.status is Status.COMPLETED, record.step("train").verdict
    assert log(record, 2) == "read shard 2\n"


@pytest.mark.parametrize(
    ("commands", "shown", "status"),
    [
        ("n\nn\nn\np rank\nc\n", "3", Status.COMPLETED),
        ("b 5\nc\np shard\nc\n", "'shard 3'", Status.COMPLETED),
        ("", "import os", Status.CANCELED),
    ],
)
def test_pdb_on_the_terminal(
    step: Step,
    run_steps: Runner,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    commands: str,
    shown: str,
    status: Status,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(commands))
    record = run_steps(step, debug=session(3, terminal=True))
    assert shown in capsys.readouterr().out
    assert record.status is status


TORCH = """
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
dist.barrier()
"""
MPI = """
import time
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
MPI.COMM_WORLD.barrier()
"""
HOROVOD = """
import horovod.torch as hvd
import torch
hvd.init()
rank = hvd.rank()
hvd.allreduce(torch.ones(1))
"""
TORCHRUN = (
    "torchrun --nnodes 2 --nproc-per-node 2 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29511 "
    "train.py"
)


@pytest.mark.recipe
@pytest.mark.parametrize(
    ("command", "script", "distribution"),
    [
        (f"{sys.executable} train.py", TORCH, PyTorch(2)),
        (TORCHRUN, TORCH, PyTorch(1)),
        (f"{sys.executable} train.py", MPI, Mpi(2)),
        (f"{sys.executable} train.py", HOROVOD, Mpi(2)),
    ],
)
def test_a_rank_below_every_launcher(
    step: Step, kind: str, run_steps: Runner, tmp_path: Path, command: str, script: str, distribution: PyTorch | Mpi
) -> None:
    if script is HOROVOD:
        pytest.importorskip("horovod")

    file = str(tmp_path / "code" / "train.py")

    def debug(port: int) -> tuple[object, ...]:
        client = Client(port, {file: [6]}, str(tmp_path / "code"))
        thread = client.event("stopped")["threadId"]
        found = client.where(thread)[1], client.value("rank")
        client.request("continue", threadId=thread)
        client.event("terminated")
        client.close()
        return found

    Path(file).write_text(script)
    code = Code(str(tmp_path / "code"), digest.of_path(tmp_path / "code"))
    step = replace(step, command=command, distribution=distribution, code=code)
    observer = Debugs(debug)
    record = run_steps(step, instances=kind, debug=session(3), observer=observer)
    assert observer.result == (6, "3")
    assert record.status is Status.COMPLETED, record.step("train").verdict
