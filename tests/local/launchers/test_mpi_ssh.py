"""mpirun through a real sshd on each instance of the rack, with the configuration of ssh that the images have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.mpi import Mpi
from allranks.errors import InputError
from allranks.local.launchers import mpi_ssh
from allranks.plan.graph import Code, Step
from allranks.runs.records import RunRecord, Status

lacking = mpi_ssh.missing(os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
needs_ssh = pytest.mark.skipif(lacking is not None, reason=lacking.found if lacking else "")

ORDINARY_USER = 12345
"""In no passwd, as in a container that is started with any number for a user."""

SESSION = """
import json, os, pwd
from mpi4py import MPI

world = MPI.COMM_WORLD
here = {
    "total": world.allreduce(10 ** world.rank),
    "library": MPI.Get_library_version(),
    "user": os.getuid(),
    "login": pwd.getpwuid(os.getuid()).pw_dir,
    "host": os.uname().nodename,
    "variables": dict(os.environ),
}
print(json.dumps(here))
"""


@pytest.fixture(autouse=True)
def _rack(rack_works: bool) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")


def step_of(folder: Path, source: str, **settings: Any) -> Step:
    code = folder / "code"
    code.mkdir()
    (code / "train.py").write_text(source, encoding="utf-8")
    return Step("mpi", "python train.py", code=Code(str(code), "digest"), instance_count=3, **settings)


def check_sessions(logs: Sequence[str], user: int) -> None:
    """Check what the ranks of SESSION have printed: they are one world on three instances, those of each instance in a
    session of their own."""
    found, ranks = [json.loads(log) for log in logs], len(logs)
    assert [each["total"] for each in found] == [int("1" * ranks)] * ranks
    assert [each["host"] for each in found] == [f"node-{rank * 3 // ranks}" for rank in range(ranks)]
    assert {each["user"] for each in found} == {user}
    assert all(each["library"].startswith("Open MPI v4.1") for each in found)
    assert len({each["login"] for each in found}) == 3
    for rank, each in enumerate(found):
        variables, far = each["variables"], each["host"] != "node-0"
        assert variables["HOME"] == each["login"]
        assert ("SSH_CONNECTION" in variables) is far
        assert "OPAL_PREFIX" not in variables
        # A variable of the user's shell is not passed on by ssh, and one of the job is on every rank.
        assert ("HF_HOME" in variables) is not far
        assert (variables["OWN"], variables["AZUREML_CR_NODE_RANK"]) == ("of the job", str(rank * 3 // ranks))
        # The interpreter is that of the engine, and no program of PyPI's Open MPI comes before the distribution's.
        assert str(Path(sys.executable).parent) in variables["PATH"].split(":")


def logs_of(record: RunRecord) -> list[str]:
    return [Path(rank.log).read_text(encoding="utf-8") for rank in record.steps[0].ranks]


def failure(record: RunRecord) -> str:
    log = Path(record.steps[0].folder, "user_logs", "mpi_log.txt")
    return f"{record.steps[0].verdict}\n{log.read_text() if log.exists() else ''}"


@needs_ssh
def test_ranks_are_in_a_session_of_their_instance(run_steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever runs the tests: root in CI."""
    monkeypatch.setenv("HF_HOME", "/of/the/shell")
    step = step_of(tmp_path, SESSION, distribution=Mpi(2), environment_variables={"OWN": "of the job"})
    record = run_steps(step, instances="rack", mpi="ssh")
    assert record.status is Status.COMPLETED, failure(record)
    check_sessions(logs_of(record), os.getuid())
    assert len(record.steps[0].ranks) == 6
    # Neither the key nor a home is left.
    assert not list(Path(record.folder).rglob("id_ed25519"))


@pytest.fixture
def of_ordinary_user() -> Iterator[Path]:
    """A folder of an ordinary user, which pytest's own folders are not."""
    if os.getuid() != 0:
        pytest.skip("the test above runs as an ordinary user")
    with tempfile.TemporaryDirectory(prefix="allranks-", dir="/var/tmp") as folder:
        os.chown(folder, ORDINARY_USER, ORDINARY_USER)
        can = ["setpriv", "--reuid", str(ORDINARY_USER), "--regid", str(ORDINARY_USER), "--clear-groups"]
        tried = subprocess.run([*can, "unshare", "--user", "--map-root-user", sys.executable, "-c", "import allranks"])
        if tried.returncode != 0:
            pytest.skip("an ordinary user cannot read this environment, or has no user namespaces")
        yield Path(folder)


@needs_ssh
def test_an_ordinary_user_needs_no_root(of_ordinary_user: Path) -> None:
    folder = of_ordinary_user
    (folder / "code").mkdir()
    (folder / "code/train.py").write_text(SESSION)
    (folder / "job.yaml").write_text(
        """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
code: code
command: python train.py
environment: azureml:any:1
environment_variables: {OWN: of the job}
distribution: {type: mpi, process_count_per_instance: 1}
resources: {instance_count: 3}
"""
    )
    command = [sys.executable, "-m", "allranks.cli.main", "run", "job.yaml", "--mpi", "ssh", "--instances", "rack"]
    environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "HF_HOME": "/of/the/shell"}
    done = subprocess.run(
        [*command, "--no-track"],
        cwd=folder,
        env=environment,
        user=ORDINARY_USER,
        group=ORDINARY_USER,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    mpirun = "".join(log.read_text() for log in folder.rglob("mpi_log.txt"))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{mpirun}"
    logs = [log.read_text() for log in sorted(folder.rglob("std_log_process_*.txt"))]
    check_sessions(logs, ORDINARY_USER)
    assert len(logs) == 3


@needs_ssh
def test_a_failed_rank_on_another_instance_is_named(run_steps) -> None:
    command = "[ $OMPI_COMM_WORLD_RANK = 2 ] && exit 7; sleep 600"
    record = run_steps(Step("mpi", command, distribution=Mpi(1), instance_count=3), instances="rack", mpi="ssh")
    verdict = record.steps[0].verdict
    assert verdict is not None, failure(record)
    assert (verdict.rank, verdict.instance_rank, verdict.reason) == (2, 2, "exit code 7")
    assert [rank.status for rank in record.steps[0].ranks[:2]] == [Status.CANCELED] * 2


def test_what_ssh_needs_is_named(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_ssh, "SSHD", "/usr/sbin/no-such-sshd")
    with pytest.raises(InputError) as raised:
        run_steps(Step("mpi", "true", distribution=Mpi(1)), instances="rack", mpi="ssh")
    assert "no /usr/sbin/no-such-sshd" in str(raised.value)
    assert "apt-get install openmpi-bin openssh-server" in str(raised.value)


@needs_ssh
def test_instances_that_share_ports_have_no_sshd(run_steps) -> None:
    with pytest.raises(InputError, match="use --instances rack"):
        run_steps(Step("mpi", "true", distribution=Mpi(1)), instances="loopback", mpi="ssh")
    record = run_steps(Step("none", "true"), instances="loopback", mpi="ssh")
    assert record.status is Status.COMPLETED
