"""`runs`, `show`, `logs` and `cancel` for a run in Azure ML: as for one on this machine, and no more is asked than has
to be."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import Command, add_step, command, pollers, project, quick, write_log
from fake import names
from fake.jobs import Job
from fake.service import FakeAzure

from allranks.azure.runs import add_record
from allranks.azure.workspace import WorkspaceName
from allranks.contract.pytorch import PyTorch
from allranks.history import log_reader
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace

__all__ = ["command", "project", "quick"]


PLAN = Plan(
    "pipeline",
    Graph(
        (
            Step("prepare", "echo"),
            Step("train", "echo", distribution=PyTorch(2), instance_count=2, after=("prepare",)),
        )
    ),
)


@pytest.fixture
def name(azure: FakeAzure, project: Path) -> str:
    """A run as `submit` leaves it, whose first step runs."""
    job = azure.jobs["calm_plum"] = Job("calm_plum", {"jobType": "Pipeline"})
    where = WorkspaceName(names.SUBSCRIPTION, names.GROUP, names.WORKSPACE)
    add_record(Workspace(project / ".allranks"), PLAN, job.name, where, job.url(), pipeline=True)
    job.move("Running")
    add_step(azure, job.name, "prepare", std_log=b"one\ntwo\n")
    return job.name


def end(azure: FakeAzure, name: str, status: str = "Completed") -> None:
    """The run goes on to its end: four ranks train."""
    azure.jobs[f"{name}-prepare"].move("Completed")
    logs = {f"std_log_process_{rank}": f"rank {rank}\n".encode() for rank in range(4)}
    add_step(azure, name, "train", status, error="" if status == "Completed" else "it failed", **logs)
    azure.jobs[name].move(status)


def downloads(azure: FakeAzure) -> list[tuple[str, int]]:
    """The logs that were asked for, with how that went."""
    return [(path.rpartition("/")[2], status) for _, path, status in azure.requests if "/user_logs/" in path]


def test_logs_are_those_of_the_steps(azure: FakeAzure, command: Command, name: str) -> None:
    end(azure, name)
    done = command("logs", name)
    assert done.out.splitlines() == [
        "prepare:0 | one",
        "prepare:0 | two",
        *(f"train:{rank} | rank {rank}" for rank in range(4)),
    ]
    assert command("logs", name, "train", "--rank", "2").out == "rank 2\n"
    assert command("logs", name, "tarin").code == 2
    assert command("logs", name, "train", "--rank", "4").code == 2


def test_only_what_is_new_is_downloaded(azure: FakeAzure, command: Command, name: str) -> None:
    assert command("logs", name, "prepare").out == "one\ntwo\n"
    job = azure.jobs[f"{name}-prepare"]
    write_log(azure, job, "std_log", b"one\ntwo\nthree\n")
    azure.clear()
    assert command("logs", name, "prepare").out == "one\ntwo\nthree\n"
    assert command("logs", name, "prepare").out == "one\ntwo\nthree\n"
    assert downloads(azure) == [("std_log.txt", 206), ("std_log.txt", 416)]


def test_a_secret_is_in_no_file_although_its_log_comes_in_pieces(
    azure: FakeAzure, command: Command, name: str, project: Path
) -> None:
    job, token = azure.jobs[f"{name}-prepare"], "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    key = f"-----BEGIN PRIVATE {'KEY'}-----\nMIIEabc\n-----END PRIVATE {'KEY'}-----\n"
    log = f"one\nwith {token} and pwd=x\n{key}\xe9 progress 50%".encode()
    file = project / ".allranks" / "runs" / name / "prepare" / "user_logs" / "std_log.txt"
    for end in range(4, len(log) + 1):
        write_log(azure, job, "std_log", log[:end])
        if end % 21 == 0 or end == len(log):
            assert command("logs", name, "prepare").code == 0
            assert not [part for part in (token[:8], "pwd=x", "MIIE") if part.encode() in file.read_bytes()]
    assert b"progress" not in file.read_bytes()  # not complete
    job.move("Completed")
    lines = command("logs", name, "prepare").out.splitlines()
    assert [*lines[:2], lines[-1]] == ["one", f"with {'*' * len(token)} and pwd=***", "\xe9 progress 50%"]
    assert len(file.read_bytes()) == len(log)  # what was stored is where it is on Azure ML


def test_a_step_that_is_over_is_not_asked_again(azure: FakeAzure, command: Command, name: str) -> None:
    azure.jobs[f"{name}-prepare"].move("Completed")
    assert command("logs", name).out == "one\ntwo\n"
    azure.clear()
    assert command("logs", name).out == "one\ntwo\n"
    assert downloads(azure) == []


@pytest.mark.parametrize("status", ["Completed", "Failed"])
def test_a_run_that_is_over_is_not_asked_again(status: str, azure: FakeAzure, command: Command, name: str) -> None:
    end(azure, name, status)
    first = command("show", name)
    assert status in first.out
    azure.clear()
    assert command("show", name).out == first.out
    assert len(command("logs", name).out.splitlines()) == 6
    assert (azure.requests, azure.sign_ins[1:]) == ([], azure.sign_ins[1:])


def test_show_says_where_it_is(azure: FakeAzure, command: Command, name: str) -> None:
    done = command("show", name)
    for said in (name, "Azure ML lab", azure.jobs[name].url(), "Running", "prepare", "train", "pytorch 2 x 2"):
        assert said in done.out
    assert command("show", name, "--json").json["submitted"]["resource_group"] == "rg"


def test_a_failure_shows_the_rank_that_raised(azure: FakeAzure, command: Command, name: str) -> None:
    end(azure, name, "Failed")
    raised = b'Traceback (most recent call last):\n  File "x"\nValueError: no\n'
    write_log(azure, azure.jobs[f"{name}-train"], "std_log_process_3", raised)
    done = command("show", name)
    for said in ("it failed", "ValueError: no", f"allranks logs {name} train --rank 3"):
        assert said in done.out


def test_logs_are_followed_to_the_end(
    azure: FakeAzure, command: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(seconds: float) -> None:
        write_log(azure, azure.jobs[f"{name}-prepare"], "std_log", b"one\ntwo\nthree\n")
        end(azure, name)

    monkeypatch.setattr(log_reader, "time", SimpleNamespace(sleep=more))
    done = command("logs", name, "prepare", "--follow")
    assert (done.code, done.out) == (0, "one\ntwo\nthree\n")


def test_a_torn_download_leaves_no_half(azure: FakeAzure, command: Command, name: str) -> None:
    azure.fail("std_log", torn=True, status=200, times=20)
    torn = command("logs", name)
    assert (torn.code, torn.out) == (1, "")
    assert "downloading user_logs/std_log.txt" in torn.err
    azure.faults.__init__()  # type: ignore[misc]
    assert command("logs", name).out == "one\ntwo\n"


def test_a_log_that_is_not_there_yet_is_asked_for_again(azure: FakeAzure, command: Command, name: str) -> None:
    end(azure, name)
    azure.fail("std_log", status=404, times=1)
    assert command("logs", name).code == 0
    assert command("logs", name, "prepare").out == "one\ntwo\n"
    azure.clear()
    command("logs", name)
    assert azure.requests == []


def test_logs_of_the_last_attempt(azure: FakeAzure, command: Command, name: str) -> None:
    write_log(azure, azure.jobs[f"{name}-prepare"], "retry_001/std_log", b"again\n")
    assert command("logs", name).out == "again\n"


def test_a_log_stays_in_its_folder(azure: FakeAzure, command: Command, name: str, project: Path) -> None:
    write_log(azure, azure.jobs[f"{name}-prepare"], "../../../outside", b"x")
    assert command("logs", name).code == 0
    assert not list(project.rglob("outside*"))


def test_a_step_that_no_plan_has(azure: FakeAzure, command: Command, name: str) -> None:
    add_step(azure, name, "inner", std_log=b"from a nested pipeline\n")
    assert "inner:0 | from a nested pipeline" in command("logs", name).out


def test_cancel(azure: FakeAzure, command: Command, name: str) -> None:
    done = command("cancel", name)
    assert (done.code, azure.jobs[name].status) == (0, "CancelRequested"), done.err
    assert f"allranks show {name}" in done.out
    azure.jobs[name].move("Canceled")
    again = command("cancel", name)
    assert (again.code, again.out) == (2, "")
    assert "it is Canceled" in again.err


def test_nothing_polls_a_cancellation(azure: FakeAzure, command: Command, name: str) -> None:
    """The SDK's poller would go on in a thread after the command has ended, at a torn address after a torn answer."""
    azure.fail("/operationResults/", delay=1.0, status=200)
    assert command("cancel", name).code == 0
    assert pollers() == []
    assert azure.requests[-1][0] == "POST"


def test_what_cannot_be_cancelled_or_resumed(azure: FakeAzure, command: Command, name: str, project: Path) -> None:
    assert command("cancel", "gone").code == 2
    local = run(Plan("p", Graph((Step("a", "true"),))), Workspace(project / ".allranks"), Options(instances="loopback"))
    done = command("cancel", local.id)
    assert done.code == 2
    assert "it is Completed" in done.err
    for arguments in (["train"], ["--now"]):
        done = command("cancel", name, *arguments)
        assert done.code == 2
        assert "the run is on Azure ML" in done.err
    resumed = command("resume", name)
    assert resumed.code == 2
    assert "runs in Azure ML, in the workspace lab" in resumed.err


def test_a_run_that_the_service_has_forgotten(azure: FakeAzure, command: Command, name: str) -> None:
    azure.jobs.clear()
    done = command("show", name)
    assert (done.code, done.out) == (2, "")
    assert f"requesting the state of {name}" in done.err
