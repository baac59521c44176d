"""mpirun through a real sshd on each instance of the rack, with the configuration of ssh that the images have."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from ssh_jobs import User, needs_ssh

from allranks.contract.mpi import Mpi
from allranks.errors import InputError
from allranks.local import preview
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.launchers import mpi_ssh
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output
from allranks.runs.records import RunRecord, Status
from allranks.runs.workspace import Workspace

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
        # A variable of the user's shell is not passed on by ssh, and one of the job is on every rank, also if both are
        # the same.
        assert ("HF_HOME" in variables) is not far
        assert variables["HF_HUB_OFFLINE"] == "1"
        assert (variables["OWN"], variables["AZUREML_CR_NODE_RANK"]) == ("of the job", str(rank * 3 // ranks))
        # The interpreter is that of the engine, and no program of PyPI's Open MPI comes before the distribution's.
        assert str(Path(sys.executable).parent) in variables["PATH"].split(":")


def failure(record: RunRecord) -> str:
    log = Path(record.steps[0].folder, "user_logs", "mpi_log.txt")
    return f"{record.steps[0].verdict}\n{log.read_text() if log.exists() else ''}"


@needs_ssh
def test_ranks_are_in_a_session_of_their_instance(user: User) -> None:
    logs = user.run(SESSION, process_count=2)
    assert len(logs) == 6
    check_sessions(logs, user.number)
    # Neither the key nor a home is left.
    assert not list(user.folder.rglob("id_ed25519"))


@needs_ssh
@pytest.mark.parametrize("mpi", ["rsh", "ssh"])
def test_a_dry_run_shows_the_command_and_the_variables_that_run(mpi: str, run_steps, workspace: Workspace) -> None:
    # The parent of a rank's wrapper is mpirun on the first instance, and its daemon on the others.
    of_parent = "$(cut -d' ' -f4 /proc/$PPID/stat)"
    command = f"cat /proc/self/environ /proc/{of_parent}/cmdline > ${{{{outputs.out}}}}/$OMPI_COMM_WORLD_RANK"
    step = Step("mpi", command, outputs=(Output("out", "uri_folder"),), distribution=Mpi(1), instance_count=2)
    plan = Plan("plan", Graph((step,)))
    shown = preview.previews(plan, workspace, INSTANCE_KINDS["rack"], mpi)["mpi"]
    record = run_steps(plan=plan, instances="rack", mpi=mpi, cold=True)
    assert record.status is Status.COMPLETED, failure(record)
    assert record.steps[0].outputs[0].path is not None
    written = Path(record.steps[0].outputs[0].path)
    assert ({"PATH", "HOME", "SHELL"} <= shown.ranks[1][1].keys()) is (mpi == "ssh")
    for process, variables in shown.ranks:
        # Paths on an instance differ by its number alone; the preview shows the first's.
        got = (written / str(process.rank)).read_text().replace(f"/instances/{process.instance_rank}/", "/instances/0/")
        expected = {f"{name}={of_run(value, record)}" for name, value in variables.items()}
        assert expected <= set(got.split("\0"))
    mpirun = shlex.split(of_run(shown.mpirun, record))
    assert (written / "0").read_text().split("\0")[-len(mpirun) - 1 : -1] == mpirun


def of_run(text: str, record: RunRecord) -> str:
    """Return a text of a preview with the id of the run."""
    return re.sub(r"\bRUN\b|RUN(?=_)", record.id, text)


@needs_ssh
def test_a_failed_rank_on_another_instance_is_named(run_steps) -> None:
    command = "[ $OMPI_COMM_WORLD_RANK = 2 ] && exit 7; sleep 600"
    record = run_steps(Step("mpi", command, distribution=Mpi(1), instance_count=3), instances="rack", mpi="ssh")
    verdict = record.steps[0].verdict
    assert verdict is not None, failure(record)
    assert (verdict.rank, verdict.instance_rank, verdict.reason) == (2, 2, "exit code 7")
    assert [rank.status for rank in record.steps[0].ranks[:2]] == [Status.CANCELED] * 2


@needs_ssh
@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("etc/ssh/sshd_config", "NoSuchOption yes\n", "instance 1 (node-1): sshd node-1 ended with exit code 255"),
        ("home/.ssh/authorized_keys", "", "@node-1: Permission denied (publickey)."),
    ],
    ids=["sshd ends", "no key is accepted"],
)
def test_an_instance_that_ssh_cannot_enter_is_named(
    file: str, content: str, reason: str, run_steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = mpi_ssh.write_instances

    def write_wrongly(folder: Path, *arguments: object) -> None:
        write(folder, *arguments)  # type: ignore[arg-type]
        (folder / "node-1" / file).write_text(content)

    monkeypatch.setattr(mpi_ssh, "write_instances", write_wrongly)
    record = run_steps(Step("mpi", "true", distribution=Mpi(1), instance_count=3), instances="rack", mpi="ssh")
    assert record.status is Status.FAILED
    assert record.steps[0].verdict is not None
    assert reason in record.steps[0].verdict.reason


def test_what_ssh_needs_is_named(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi_ssh, "SSHD", "/usr/sbin/no-such-sshd")
    with pytest.raises(InputError) as raised:
        run_steps(Step("mpi", "true", distribution=Mpi(1)), instances="rack", mpi="ssh")
    assert "no /usr/sbin/no-such-sshd" in str(raised.value)
    assert "apt-get install openmpi-bin openssh-server" in str(raised.value)


@pytest.mark.parametrize("character", [":", '"', "%"])
def test_a_folder_that_ssh_cannot_use_is_refused(character: str, tmp_path: Path) -> None:
    problem = mpi_ssh.unfit(INSTANCE_KINDS["rack"], tmp_path / f"a{character}b")
    assert problem is not None
    assert f"a{character}b has a " in problem.found
    assert mpi_ssh.unfit(INSTANCE_KINDS["rack"], tmp_path / "a $HOME 'b#\\") is None


@needs_ssh
def test_instances_that_share_ports_have_no_sshd(run_steps) -> None:
    with pytest.raises(InputError, match="use --instances rack"):
        run_steps(Step("mpi", "true", distribution=Mpi(1)), instances="loopback", mpi="ssh")
    record = run_steps(Step("none", "true"), instances="loopback", mpi="ssh")
    assert record.status is Status.COMPLETED
