"""`allranks schedules next` and `run`: real processes, killed, stopped and gone on with."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from allranks.cli.main import main
from allranks.history import stored
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
    assert " 02:30 CE" in text


def test_a_wrong_declaration_starts_nothing(project: Path) -> None:
    file = project / "pipelines" / "working.py"
    file.write_text(file.read_text().replace('"30 2 * * *"', '"garbage"'))
    done = allranks("schedules", "run", folder=project)
    assert done.code == 2
    assert "schedule nightly, key trigger.expression (pipelines/working.py:nightly)" in done.err
    assert "Traceback" not in done.err
