"""Schedules of an Azure ML workspace, through the real client."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import call_command
from fake.service import FakeAzure

from allranks_client.messages import user_error
from allranks_command import Ended, write

DECLARED = """\
from pathlib import Path

from azure.ai.ml import Input, dsl, load_component
from azure.ai.ml.entities import CronTrigger, JobSchedule, RecurrencePattern, RecurrenceTrigger

say = load_component(Path(__file__).parent / "../say/component.yaml")


@dsl.pipeline(default_compute="cpu-cluster")
def saying(word: Input(type="string") = "hello"):
    say(word=word)


def nightly() -> JobSchedule:
    trigger = CronTrigger(expression="30 2 * * *", time_zone="W. Europe Standard Time")
    job, tags = saying(word="${{creation_context.trigger_time}}"), {"allranks.retries": "2"}
    return JobSchedule(name="nightly", trigger=trigger, create_job=job, tags=tags)


def monthly() -> JobSchedule:
    pattern = RecurrencePattern(hours=[4, 16], minutes=0, month_days=[1, 15])
    trigger = RecurrenceTrigger(frequency="month", interval=1, schedule=pattern, start_time="2026-01-01T00:00:00")
    return JobSchedule(name="monthly", display_name="By the month", trigger=trigger, create_job=saying())
"""
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: say
version: "1"
inputs:
  word: {type: string}
code: .
environment: {image: "python:3.12"}
command: python say.py ${{inputs.word}}
"""

# Each applies several times, and compiles for that.
pytestmark = pytest.mark.slow

Command = Callable[..., Ended]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "say/component.yaml", COMPONENT)
    write(tmp_path, "say/say.py", "import sys; print(sys.argv[1])\n")
    write(tmp_path, "pipelines/saying.py", DECLARED)
    write(tmp_path, "pyproject.toml", "")
    return tmp_path


@pytest.fixture
def schedules(
    azure: FakeAzure, project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """`allranks schedules` in the project; whatever it prints has no secret in it and no traceback."""
    monkeypatch.setenv("AZURE_ML_DISABLE_ON_DISK_CACHE", "true")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(project)

    def call(*arguments: str) -> Ended:
        azure.clear()
        return call_command(["schedules", *arguments], azure, monkeypatch, capfd)

    return call


def sent(azure: FakeAzure) -> list[str]:
    """What changed anything: method and the path's last part."""
    return [f"{method} {path.split('?')[0].rpartition('/')[2]}" for method, path, _ in azure.requests
            if method in ("PUT", "DELETE", "PATCH")]  # fmt: skip


def edit(project: Path, before: str, after: str, file: str = "pipelines/saying.py") -> None:
    text = (project / file).read_text()
    assert before in text
    (project / file).write_text(text.replace(before, after))


def test_applying_again_sends_nothing(azure: FakeAzure, schedules: Command) -> None:
    done = schedules("apply")
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if not line.startswith(" ")] == [
        "monthly: created",
        "nightly: created",
    ]
    trigger = azure.schedules["monthly"]["properties"]["trigger"]
    assert (trigger["frequency"].lower(), trigger["schedule"]["monthDays"]) == ("month", [1, 15])
    # A start may come back in another form.
    for start in (trigger["startTime"], "2026-01-01T01:00:00.0000000+01:00", "2026-01-01 00:00:00"):
        azure.schedules["monthly"]["properties"]["trigger"]["startTime"] = start
        again = schedules("apply")
        assert (again.code, again.out.splitlines()) == (0, ["monthly: unchanged", "nightly: unchanged"])
        assert sent(azure) == []


def test_an_interrupted_apply_continues(azure: FakeAzure, schedules: Command) -> None:
    """An operation that fails at its end, a refusal, and an outage are one message each."""
    azure.operation_error = user_error("The workspace has too many schedules.")
    done = schedules("apply")
    assert done.code == 2
    assert "the service accepted it, then it failed: UserError: The workspace has too many schedules." in done.err
    azure.schedules.clear()
    azure.fail("/schedules/nightly", status=400, times=1, method="PUT")
    assert schedules("apply").code == 2
    assert azure.schedules.keys() == {"monthly"}
    assert schedules("apply").out.splitlines()[0] == "monthly: unchanged"
    assert azure.schedules.keys() == {"monthly", "nightly"}


CHANGES = (
    ("pipelines/saying.py", '"30 2 * * *"', '"5 2 * * *"', "trigger: cron 30 2 * * *"),
    ("pipelines/saying.py", 'word="${{creation_context.trigger_time}}"', 'word="bye"', "create_job"),
    ("say/say.py", "argv[1]", "argv[1:]", "create_job"),
)
"""File, what stands there, what comes in its place, and what is said of it."""


def test_only_what_changed_is_applied(azure: FakeAzure, schedules: Command, project: Path) -> None:
    """One change after another: what an earlier one has applied is not applied again."""
    assert schedules("apply").code == 0
    for number, (file, before, after, said) in enumerate(CHANGES):
        edit(project, before, after, file)
        if number == 0:
            dry = schedules("apply", "--dry-run")
            assert "nightly: would update" in dry.out
            assert said in dry.out
            assert sent(azure) == []
        done = schedules("apply")
        assert "nightly: updated" in done.out
        assert said in done.out
        assert ("monthly: unchanged" in done.out) == (file == "pipelines/saying.py")
        assert "PUT nightly" in sent(azure)
    # What somebody else changed is put right.
    azure.schedules["nightly"]["properties"]["trigger"]["expression"] = "0 9 * * *"
    assert "trigger: cron 0 9 * * *, W. Europe Standard Time → cron 5 2 * * *" in schedules("apply").out


def test_schedules_are_switched_and_deleted_by_name(azure: FakeAzure, schedules: Command, project: Path) -> None:
    schedules("apply")
    job = azure.schedules["nightly"]["properties"]["action"]
    assert azure.schedules["nightly"]["properties"]["tags"] == {"allranks.retries": "2"}
    assert schedules("disable", "nightly").out == "nightly: disabled\n"
    assert schedules("disable", "nightly").out == "nightly: disabled already\n"
    assert sent(azure) == []
    assert azure.schedules["nightly"]["properties"]["isEnabled"] is False
    # Applying does not switch it on again.
    edit(project, '"30 2 * * *"', '"5 2 * * *"')
    assert "nightly: updated" in schedules("apply").out
    assert azure.schedules["nightly"]["properties"]["isEnabled"] is False
    assert schedules("enable", "nightly", "--json").json == {"name": "nightly", "state": "enabled", "changed": True}
    assert azure.schedules["nightly"]["properties"]["action"]["jobDefinition"]["jobs"].keys() == (
        job["jobDefinition"]["jobs"].keys()
    )
    assert schedules("apply").out.splitlines()[1] == "nightly: unchanged"
    assert schedules("delete", "nightly").out == "nightly: deleted\n"
    assert azure.schedules.keys() == {"monthly"}


def test_what_is_not_declared_any_more_is_pruned(azure: FakeAzure, schedules: Command, project: Path) -> None:
    schedules("apply")
    foreign = {**azure.schedules["nightly"], "name": "foreign"}
    foreign["properties"] = {**foreign["properties"], "properties": {}}
    azure.schedules["foreign"] = foreign
    edit(project, 'name="nightly"', 'name="at-night"')
    assert "nightly: would delete" in schedules("apply", "--dry-run", "--prune").out
    assert "delete" not in schedules("apply", "--dry-run").out
    assert "nightly: deleted" in schedules("apply", "--prune").out
    assert azure.schedules.keys() == {"at-night", "monthly", "foreign"}


def test_the_list_shows_what_is_declared_beside_what_is_applied(
    azure: FakeAzure, schedules: Command, project: Path
) -> None:
    schedules("apply")
    schedules("disable", "monthly")
    edit(project, '"30 2 * * *"', '"5 2 * * *"')
    edit(project, 'name="monthly"', 'name="by-month"')
    rows = {row["name"]: row for row in schedules("list", "--json").json}
    assert {name: (row["state"], row["differs"]) for name, row in rows.items()} == {
        "by-month": ("not applied", False),
        "monthly": ("disabled", False),
        "nightly": ("enabled", True),
    }
    assert rows["monthly"]["next"] is None
    text = schedules("list").out
    assert "nightly  enabled, applied with another trigger" in text
    assert text.count("  next: ") == 2


def test_an_unknown_name_is_told(schedules: Command, azure: FakeAzure) -> None:
    verbs = ("enable", "disable", "delete")
    for verb in verbs:
        assert "has no schedules" in schedules(verb, "nightly").err
    schedules("apply", "pipelines/saying.py")
    for verb in verbs:
        done = schedules(verb, "nihgtly")
        assert (done.code, "did you mean nightly?" in done.err) == (2, True)
        assert sent(azure) == []


def test_what_has_ended_is_not_applied(schedules: Command, azure: FakeAzure, project: Path) -> None:
    edit(project, 'start_time="2026-01-01T00:00:00"', 'start_time="2020-01-01T00:00:00", end_time="2021-01-01"')
    done = schedules("apply")
    assert (done.code, "its end is in the past" in done.err) == (2, True)
    assert azure.schedules == {}


def test_the_compute_of_a_pipeline_that_names_none(schedules: Command, azure: FakeAzure, project: Path) -> None:
    edit(project, 'default_compute="cpu-cluster"', "")
    done = schedules("apply")
    assert (done.code, "no compute is given for say" in done.err) == (2, True)
    assert azure.schedules == {}
    assert schedules("apply", "--compute", "gpu-cluster").code == 0
    job = azure.schedules["monthly"]["properties"]["action"]["jobDefinition"]
    assert job["settings"]["default_compute"].endswith("/computes/gpu-cluster")
    assert schedules("apply", "--compute", "cpu-cluster").out.count("updated") == 2
