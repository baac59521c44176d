"""Ctrl-C, once and twice, and SIGKILL, while ranks run. What a rank holds open tells when it is gone."""

import os
import signal
from pathlib import Path

import pytest

from allranks.history import stored
from allranks.history.records import Status
from allranks.workspace import Workspace
from allranks_command import PATIENCE, Fifo, allranks, called, started, write, write_job
from mpirun import needs_mpirun

TWO_BY_TWO = {
    "distribution": {"type": "pytorch", "process_count_per_instance": 2},
    "resources": {"instance_count": 2},
}


def wait_for_ranks(fifo: Fifo, count: int) -> None:
    told = b""
    while told.count(b"up\n") < count:
        told += fifo.read()
    assert told.count(b"up\n") == count


@needs_mpirun
def test_ctrl_c_ends_the_run_in_good_order(tmp_path: Path) -> None:
    command = "exec 3> ${{inputs.fifo}}; trap 'echo saved; exit 1' TERM; echo up >&3; while :; do sleep 0.05; done"
    with Fifo(tmp_path / ".allranks" / "fifo") as fifo:
        settings = {"type": "mpi", "process_count_per_instance": 2}
        write_job(tmp_path, command, inputs={"fifo": str(fifo.path)}, **TWO_BY_TWO | {"distribution": settings})
        with started("run", "job.yml", folder=tmp_path) as run:
            wait_for_ranks(fifo, 4)
            os.killpg(run.pid, signal.SIGINT)
            out, err = run.communicate(timeout=PATIENCE)
        assert fifo.read() == b""
    assert (run.returncode, err) == (130, "")
    assert "stopped by SIGINT: ranks have 10 s to exit" in out
    assert "job was canceled after" in out
    record = stored.run(Workspace(tmp_path / ".allranks"), "latest")
    assert f"allranks resume {record.id}" in out.splitlines()[-1]
    (step,) = record.steps
    assert {record.status, step.status, *(rank.status for rank in step.ranks)} == {Status.CANCELED}
    # The shell may say first that SIGTERM, which goes to the whole process group, ended its `sleep`.
    assert [Path(rank.log).read_text().splitlines()[-1] for rank in step.ranks] == ["saved"] * 4


def test_a_second_ctrl_c_ends_ranks_that_do_not_listen(tmp_path: Path) -> None:
    command = "exec 3> ${{inputs.fifo}}; trap '' TERM INT; echo up >&3; while :; do sleep 0.05; done"
    with Fifo(tmp_path / ".allranks" / "fifo") as fifo:
        write_job(tmp_path, command, inputs={"fifo": str(fifo.path)}, **TWO_BY_TWO)
        with started("run", "job.yml", folder=tmp_path) as run:
            wait_for_ranks(fifo, 4)
            run.send_signal(signal.SIGINT)
            assert run.stdout is not None
            assert any("another signal kills them" in line for line in run.stdout)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=PATIENCE)
        assert fifo.read() == b""
    assert (run.returncode, err) == (130, "")
    assert "stopped by SIGINT: ranks are killed" in out
    (step,) = stored.run(Workspace(tmp_path / ".allranks"), "latest").steps
    assert [rank.signal for rank in step.ranks] == ["SIGKILL"] * 4


def test_ctrl_c_while_the_pipeline_is_read_starts_and_writes_nothing(tmp_path: Path) -> None:
    with Fifo(tmp_path / "fifo") as fifo:
        write(
            tmp_path,
            "slow.py",
            "import time\nwith open('fifo', 'w') as fifo: fifo.write('up')\nwhile True: time.sleep(60)\n",
        )
        with started("run", "slow.py", folder=tmp_path) as run:
            assert fifo.read() == b"up"
            os.killpg(run.pid, signal.SIGINT)
            assert run.communicate(timeout=PATIENCE) == ("", "")
    assert run.returncode == 130
    assert not (tmp_path / ".allranks").exists()


@pytest.mark.slow
def test_after_sigkill_no_rank_is_left_and_resume_finishes_the_run(tmp_path: Path) -> None:
    command = (
        "exec 3> ${{inputs.fifo}}; [ -e ${{outputs.out}}/half-$RANK ] && echo finished && exit;"
        " touch ${{outputs.out}}/half-$RANK; echo up >&3; exec sleep 1000"
    )
    with Fifo(tmp_path / ".allranks" / "fifo") as fifo:
        write_job(
            tmp_path, command, inputs={"fifo": str(fifo.path)}, outputs={"out": {"type": "uri_folder"}}, **TWO_BY_TWO
        )
        with started("run", "job.yml", folder=tmp_path) as run:
            wait_for_ranks(fifo, 4)
            run.kill()
            _, errors = run.communicate(timeout=PATIENCE)
        assert errors == ""
        assert fifo.read() == b""
        assert called("runs", "--json", folder=tmp_path).json[0]["status"] == "Interrupted"
        done = allranks("resume", "latest", "--json", folder=tmp_path)
    assert done.code == 0
    (step,) = done.json["steps"]
    assert (done.json["status"], step["attempt"]) == ("Completed", 1)
    again = called("resume", "latest", folder=tmp_path)
    assert (again.code, again.out) == (2, "")
    assert "is complete" in again.err
    shown = called("logs", "latest", folder=tmp_path).out.splitlines()
    assert shown == [f"job:{rank} | finished" for rank in range(4)]
