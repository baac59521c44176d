"""`allranks schedules`: real processes, killed, stopped and gone on with, and the commands about them."""

import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from allranks.cli.main import main
from allranks.history import stored
from allranks.text import local_time
from allranks.workspace import Workspace
from allranks_command import PATIENCE, Ended, Fifo, allranks, started, write

pytestmark = pytest.mark.slow

DECLARED = """\
from azure.ai.ml import Input, command, dsl
from azure.ai.ml.entities import CronTrigger, JobSchedule, RecurrenceTrigger

work = command(
    name="work",
    command="[ -e {go} ] || {{ echo waiting > {fifo}; sleep 600; }}; echo ${{{{inputs.when}}}} ${{{{inputs.name}}}}",
    environment="azureml:cpu:1",
    inputs={{"when": "", "name": ""}},
)


@dsl.pipeline(default_compute="cpu-cluster")
def working(when: Input(type="string"), name: Input(type="string")):
    work(when=when, name=name)


def hourly() -> JobSchedule:
    job = working(when="${{{{creation_context.trigger_time}}}}", name="${{{{name}}}}")
    return JobSchedule(name="hourly", trigger=RecurrenceTrigger(frequency="hour", interval=1), create_job=job)


def nightly() -> JobSchedule:
    trigger = CronTrigger(expression="30 2 * * *", time_zone="W. Europe Standard Time")
    return JobSchedule(name="nightly", trigger=trigger, create_job=working(when="night", name=""))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    fifo, go = tmp_path / ".allranks" / "fifo", tmp_path / "go"
    write(tmp_path, "pipelines/working.py", DECLARED.format(fifo=fifo, go=go))
    return tmp_path


def until(process: subprocess.Popen[str], text: str) -> str:
    """The scheduler's next line that has this in it."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"it ended without {text!r}: {process.stderr and process.stderr.read()}")


def test_a_scheduler_that_is_killed_or_stopped_is_gone_on_with(project: Path) -> None:
    run = ("schedules", "run", "--slots", "1", "--instances", "loopback", "--no-track")
    with Fifo(project / ".allranks" / "fifo") as fifo:
        with started(*run, "pipelines", folder=project) as process:
            name = until(process, "hourly  fires: run ").split()[-1]
            until(process, "nightly  next: ")
            assert fifo.read() == b"waiting\n"
            assert "another scheduler is using it" in allranks(*run, folder=project).err
            process.kill()
            process.wait(PATIENCE)
        with started(*run, folder=project) as process:
            until(process, f"run {name} resumes")
            until(process, "hourly  next: ")
            assert process.stdout is not None
            process.stdout.close()  # as in `allranks schedules run | head`
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    assert [str(record.status) for record in stored.runs(Workspace(project / ".allranks"))] == ["Canceled"]
    (project / "go").touch()
    with started(*run, "--json", folder=project) as process:
        until(process, f'"event": "resumed", "schedule": "hourly", "run": "{name}"')
        until(process, '"status": "Completed"')
        process.send_signal(signal.SIGINT)
        until(process, '"event": "stopped"')
        assert process.wait(PATIENCE) == 0
    (record,) = stored.runs(Workspace(project / ".allranks"))
    (step,) = record.steps
    fired = name.removeprefix("hourly-")
    assert record.job_name == name
    assert [fired[:4], fired[9:11]] == [step.inputs["when"][:4], step.inputs["when"][11:13]]
    assert step.inputs["name"] == name


def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], folder: Path, *words: str) -> Ended:
    """The command in this process, which has imported azure-ai-ml already."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["allranks", "schedules", *words])
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    return Ended(code, *capfd.readouterr())


def test_the_next_firings_are_listed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    done = call(monkeypatch, capfd, project, "next", "3", "--json")
    hourly, nightly = done.json
    assert (hourly["name"], nightly["declared_in"]) == ("hourly", "pipelines/working.py:nightly")
    assert [len(hourly["firings"]), len(nightly["firings"])] == [3, 3]
    assert {moment[11:] for moment in nightly["firings"]} <= {"00:30:00+00:00", "01:30:00+00:00"}
    text = call(monkeypatch, capfd, project, "next", "1", "pipelines/working.py").out
    assert "nightly  cron 30 2 * * *, W. Europe Standard Time" in text
    assert f"  {local_time(datetime.fromisoformat(nightly['firings'][0]))}\n" in text
    assert call(monkeypatch, capfd, project, "next", "pipelines/working.py", "1").out == text


def test_a_schedule_of_this_machine_is_disabled_and_enabled(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The arguments are in any order, and without a workspace this machine is meant."""

    def states() -> dict[str, tuple[str, bool]]:
        rows = call(monkeypatch, capfd, project, "list", "--json").json
        return {row["name"]: (row["state"], row["next"] is not None) for row in rows}

    assert states() == {"hourly": ("enabled", True), "nightly": ("enabled", True)}
    assert call(monkeypatch, capfd, project, "disable", "nightly", "pipelines").out == "nightly: disabled\n"
    assert call(monkeypatch, capfd, project, "disable", "pipelines", "nightly").out == "nightly: disabled already\n"
    assert states() == {"hourly": ("enabled", True), "nightly": ("disabled", False)}
    assert "no scheduler is running" in call(monkeypatch, capfd, project, "list").out
    assert call(monkeypatch, capfd, project, "enable", "nightly", "--json").json["changed"] is True
    assert states()["nightly"] == ("enabled", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("disable", "nightyl"), "nightly"),
        (("enable", "pipelines", "nightly", "./other"), "a second file or folder"),
        (("trigger", "pipelines"), "no name of a schedule"),
        (("history", "nightly"), "it has never fired here"),
        (("next", "0"), "a number of firings"),
    ],
)
def test_what_is_no_schedule_is_named(
    words: tuple[str, ...],
    said: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    done = call(monkeypatch, capfd, project, *words)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_schedule_is_run_now(project: Path) -> None:
    write(project, "pipelines/working.py", DECLARED.format(fifo="none", go="/"))
    done = allranks("schedules", "trigger", "pipelines", "nightly", folder=project)
    assert (done.code, "starts now: run nightly-" in done.out) == (0, True), done.err
    (row,) = (row for row in allranks("schedules", "list", "--json", folder=project).json if row["name"] == "nightly")
    assert row["last"]["status"] == "Completed"
    assert f"run {row['last']['run']} Completed" in done.out


ARRIVALS = """\
from azure.ai.ml import Input, command, dsl
from azure.ai.ml.entities import CronTrigger, JobSchedule

work = command(
    name="work",
    command="ls ${{{{inputs.images}}}} && [ -e {go} ] || {{ touch {go}; exit 3; }}",
    environment="azureml:cpu:1",
    inputs={{"images": Input(type="uri_folder")}},
)


@dsl.pipeline
def working(images: Input(type="uri_folder")):
    work(images=images)


def arrivals() -> JobSchedule:
    tags = {{"allranks.on_change": "images", "allranks.shortest_interval": "1s", "allranks.retries": "1",
            "allranks.retry_after": "1s"}}
    job = working(images=Input(type="uri_folder", path="{images}"))
    return JobSchedule(name="arrivals", trigger=CronTrigger(expression="30 2 * * *"), create_job=job, tags=tags)
"""


def test_a_schedule_fires_when_data_changes_and_a_failed_firing_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    images, notices = tmp_path / "images", tmp_path / "notices"
    write(tmp_path, "images/1.txt", "1")
    write(tmp_path, "pipelines/arrivals.py", ARRIVALS.format(go=tmp_path / "go", images=images))
    run = ("schedules", "run", "--instances", "loopback", "--no-track", "--notify", f"tee -a {notices}")
    with started(*run, folder=tmp_path) as process:
        until(process, "next: when images changes, at most every 1 s")
        (images / "2.txt").write_text("2")
        name = until(process, "fires, as images has changed: run ").split()[-1]
        until(process, f"run {name} Failed: work: ")
        until(process, "(1 of 1)")
        until(process, f"is retried: run {name}")
        until(process, f"run {name} Completed")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    (record,) = stored.runs(Workspace(tmp_path / ".allranks"))
    (row,) = call(monkeypatch, capfd, tmp_path, "history", "arrivals", "--json").json
    assert (row["firing"]["status"], row["firing"]["retries"], row["run"]["id"]) == ("Completed", 1, record.id)
    assert f"Completed  {record.id}" in call(monkeypatch, capfd, tmp_path, "history", "arrivals").out
    assert call(monkeypatch, capfd, tmp_path, "history", "arrivals", "--page").code == 0
    assert "allranks schedules history arrivals --page" in (tmp_path / ".allranks/schedule-arrivals.html").read_text()
    assert "  when images changes, at most every 1 s" in call(monkeypatch, capfd, tmp_path, "list").out
    assert "on this machine when images changes" in call(monkeypatch, capfd, tmp_path, "next", "1").out
    assert not notices.exists()  # nothing has failed in the end


def test_a_wrong_declaration_starts_nothing(project: Path) -> None:
    file = project / "pipelines" / "working.py"
    file.write_text(file.read_text().replace('"30 2 * * *"', '"garbage"'))
    done = allranks("schedules", "run", folder=project)
    assert done.code == 2
    assert "schedule nightly, key trigger.expression (pipelines/working.py:nightly)" in done.err
    assert "Traceback" not in done.err
