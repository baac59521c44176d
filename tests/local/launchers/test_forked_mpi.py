"""Ranks of a real mpirun that are forked from a fork server, on emulated instances."""

from pathlib import Path

import psutil
import pytest

from allranks.contract.mpi import Mpi
from allranks.history.records import RunRecord, Status
from allranks.plan.graph import Code, Step
from allranks.workspace import Workspace
from mpirun import needs_mpirun

pytestmark = needs_mpirun

SCRIPT = """
import sys
forked = "torch" in sys.modules
import os, signal, threading
import torch
from mpi4py import MPI

world = MPI.COMM_WORLD
print(forked, world.allreduce(10 ** world.rank), sys.argv[1:], os.environ["OMPI_COMM_WORLD_LOCAL_RANK"], flush=True)
if "fail" in sys.argv and world.rank == 2:
    os._exit(7)
if "signal" in sys.argv and world.rank == 2:
    os.kill(os.getpid(), signal.SIGUSR1)
if len(sys.argv) > 2:
    threading.Event().wait()
"""


def _step(folder: Path, arguments: str) -> Step:
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "train.py").write_text(SCRIPT, encoding="utf-8")
    code = Code(str(folder / "code"), "digest")
    return Step("mpi", f"python train.py {arguments}", code=code, distribution=Mpi(2), instance_count=2)


def _logs(record: RunRecord) -> list[str]:
    return [Path(rank.log).read_text(encoding="utf-8").strip() for rank in record.steps[0].ranks]


# Cold ranks of mpi do in test_launchers.py.
def test_ranks_speak_with_each_other(kind: str, run_steps, tmp_path: Path) -> None:
    record = run_steps(_step(tmp_path, "a"), instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    assert _logs(record) == [f"True 1111 ['a'] {rank % 2}" for rank in range(4)]
    assert [rank.exit_code for rank in record.steps[0].ranks] == [0] * 4
    assert all(rank.ended for rank in record.steps[0].ranks)


@pytest.mark.parametrize(
    ("kind", "argument", "reason"),
    [("rack", "fail", "exit code 7"), pytest.param("loopback", "signal", "SIGUSR1", marks=pytest.mark.recipe)],
    indirect=["kind"],
)
def test_a_failed_rank_is_named(
    kind: str, argument: str, reason: str, run_steps, tmp_path: Path, workspace: Workspace
) -> None:
    record = run_steps(_step(tmp_path, f"a {argument}"), instances=kind)
    verdict = record.steps[0].verdict
    assert verdict is not None
    assert (verdict.rank, verdict.instance_rank) == (2, 1)
    assert reason in verdict.reason
    assert all(log.startswith("True 1111") for log in _logs(record))
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(workspace.root) in " ".join(command)]
