"""`allranks why`: over a folder of logs, as text and as JSON, what it cannot explain, and the codes of messages."""

import json
from pathlib import Path

import pytest

from allranks.cli.commands.why import why
from allranks.cli.console import problems_text
from allranks.errors import InputError, Problem
from allranks.history.records import Status, Verdict
from allranks.history.store import Store
from allranks.plan.walk import LEFT_OUT
from allranks.workspace import Workspace
from allranks_command import called
from run_records import make_run, make_step

LOG = "Traceback (most recent call last):\n  File \"/code/train.py\", line 10, in <module>\nKeyError: 'RANK'\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "train" / "user_logs").mkdir(parents=True)
    (tmp_path / "train" / "user_logs" / "std_log_process_1.txt").write_text(LOG)
    (tmp_path / "train" / "user_logs" / "std_log_process_0.txt").write_text("ConnectionResetError: Connection reset\n")
    return tmp_path


def test_the_cause_the_traceback_and_the_advice(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    why(str(logs))
    text = capsys.readouterr().out
    assert "train: rank 1: KeyError: 'RANK' (train.py:10)" in text
    assert '│   File "/code/train.py", line 10, in <module>' in text
    assert "allranks why launch-variable" in text
    why(str(logs), json=True)
    (verdict,) = json.loads(capsys.readouterr().out)
    assert (verdict["rank"], verdict["where"], verdict["code"]) == (1, "train.py:10", "launch-variable")


@pytest.mark.parametrize("message", ["no data", f"no data in {'/folder' * 20}/x.csv", "\n  no data"])
def test_an_exception_is_printed_once(logs: Path, capsys: pytest.CaptureFixture[str], message: str) -> None:
    log = logs / "train" / "user_logs" / "std_log_process_1.txt"
    log.write_text(LOG.replace("KeyError: 'RANK'", f"ValueError: {message}"))
    why(str(logs))
    text = capsys.readouterr().out
    assert text.count("no data") == 1
    assert f"ValueError: {message.strip()} (train.py:10)" in text


def test_what_the_code_of_a_failed_step_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Workspace(tmp_path)
    place.make()
    step = make_step("train", status=Status.FAILED, verdict=Verdict("train", "exit code 1", rank=0))
    note = f"{LEFT_OUT} train: .env (settings with secrets)"
    with Store(place.database) as store:
        store.add_run(make_run(step, status=Status.FAILED, notes=["instances are on loopback", note]), "")
    why("calm_otter", folder=tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == note


@pytest.mark.parametrize("step", ["evaluate", None])
def test_logs_without_a_failure(logs: Path, step: str | None) -> None:
    if step is None:
        (logs / "train" / "user_logs" / "std_log_process_1.txt").write_text("done\n")
    with pytest.raises(InputError, match="show no failure"):
        why(str(logs), step)


@pytest.mark.parametrize(
    ("status", "straggler", "found", "fix"),
    [
        (Status.INTERRUPTED, "", "its engine died or was killed", "allranks resume calm_otter"),
        (
            Status.COMPLETED,
            "rank 1 is slower",
            "it has not failed; train: rank 1 is slower",
            "allranks show calm_otter",
        ),
    ],
)
def test_a_run_of_which_no_step_has_failed(
    tmp_path: Path, status: Status, straggler: str, found: str, fix: str
) -> None:
    place = Workspace(tmp_path)
    place.make()
    with Store(place.database) as store:
        store.add_run(make_run(make_step("train", straggler=straggler), status=status), "")
    with pytest.raises(InputError, match=found) as raised:
        why("calm_otter", folder=tmp_path)
    assert fix in str(raised.value)


def test_a_code_is_explained(tmp_path: Path) -> None:
    done = called("why", "missing-package", folder=tmp_path)
    assert done.code == 0
    assert "lacks a package" in done.out
    assert "](" not in done.out
    assert called("why", "missing-package", "--json", folder=tmp_path).json["code"] == "missing-package"


def test_all_codes_are_listed(tmp_path: Path) -> None:
    listed = called("why", "--codes", folder=tmp_path).out.splitlines()
    described = [line.split(maxsplit=1) for line in listed]
    assert ["disk-full", "The disk of the workspace is full"] in described
    assert called("why", "--codes", "--json", folder=tmp_path).json[0]["code"] == described[0][0]


def test_a_rule_is_explained(tmp_path: Path) -> None:
    done = called("why", "nested-launcher", folder=tmp_path)
    assert done.code == 0
    assert "level   warning" in done.out
    assert "accelerate#3494" in done.out
    assert "# allranks: ignore nested-launcher" in done.out
    assert "ignore" not in called("why", "binding", folder=tmp_path).out


def test_an_unknown_code(tmp_path: Path) -> None:
    done = called("why", "disk-ful", folder=tmp_path)
    assert done.code == 2
    assert "did you mean disk-full?" in done.err


def test_a_message_with_a_code_names_the_command() -> None:
    problem = Problem("here", "nothing", "something", "add it", code="disk-full")
    assert problem == Problem("here", "nothing", "something", "add it")
    assert str(problem).endswith("\n  more: allranks why disk-full")
    assert problems_text([problem]).plain.endswith("\n  more      allranks why disk-full")
    assert "more" not in str(Problem("here", "nothing"))
