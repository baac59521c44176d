"""What azure-ai-ml lets through of schedules is refused, with the place and the fix; what is right is found."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from azure.ai.ml.constants import TimeZone
from azure.ai.ml.entities import CronTrigger, RecurrencePattern, RecurrenceTrigger
from tzlocal import windows_tz

from allranks.errors import InputError
from allranks.schedules.finding import find_schedules
from allranks.schedules.reading import read_trigger
from allranks.schedules.triggers import Cron, Recurrence, in_words, zone
from allranks.sdk.session import session
from allranks_command import write
from notebooks import write_notebook


def cron(expression: Any = "0 2 * * *", **more: Any) -> CronTrigger:
    return CronTrigger(expression=expression, **more)


def every(frequency: str = "day", interval: Any = 1, hours: Any = 2, minutes: Any = 30, **more: Any) -> Any:
    days = {key: more.pop(key) for key in ("week_days", "month_days") if key in more}
    pattern = RecurrencePattern(hours=hours, minutes=minutes, **days)
    return RecurrenceTrigger(frequency=frequency, interval=interval, schedule=pattern, **more)


BERLIN = "W. Europe Standard Time"
PLUS_TWO = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("trigger", "where", "said"),
    [
        (cron("garbage"), "expression", "five fields"),
        (cron("* * * * * *"), "expression", "omit the seconds"),
        (cron(""), "expression", "five fields"),
        (cron(None), "expression", "None"),
        (cron("60 * * * *"), "expression", "out of range"),
        (cron("* 24 * * *"), "expression", "out of range"),
        (cron("30-10 * * * *"), "expression", "30-10 ends before it begins"),
        (cron("*/0 * * * *"), "expression", "*/0"),
        (cron("a * * * *"), "expression", "a is not a number"),
        (cron("r * * * *"), "expression", "r is not a number"),
        (cron("@daily"), "expression", "five fields"),
        (cron("0 2 1 * *"), "expression", "which Azure ML ignores"),
        (cron("0 2 * 6 *"), "expression", "which Azure ML ignores"),
        (cron("0 2 * * 7"), "expression", "Sunday is 0, not 7"),
        (cron("0 2 * * L5"), "expression", "l5 is not a number or one of sun, mon"),
        (cron("0 2 * * 1#2"), "expression", "1#2"),
        (cron(time_zone="Europe/Berlin"), "time_zone", f'write "{BERLIN}"'),
        (cron(time_zone="W Europe Standard Time"), "time_zone", f"did you mean {BERLIN}?"),
        (cron(time_zone="nowhere"), "time_zone", "azure.ai.ml.constants.TimeZone"),
        (cron(start_time="soon"), "start_time", "YYYY-MM-DDThh:mm:ss"),
        (cron(start_time="2026-13-01T00:00:00"), "start_time", "YYYY-MM-DDThh:mm:ss"),
        (cron(start_time="2026-07-01T10:15:00-04:00", time_zone=BERLIN), "start_time", 'write "2026-07-01T16:15:00"'),
        (cron(start_time=datetime(2026, 1, 1, tzinfo=PLUS_TWO), time_zone=BERLIN), "start_time", "drops the offset"),
        (cron(start_time="2026-01-02T00:00:00", end_time="2026-01-01T00:00:00"), "end_time", "not after the start"),
        (cron("0 2 * * 1", start_time="2026-01-06T00:00:00", end_time="2026-01-08T00:00:00"), "expression", "never"),
        (every(interval=-3), "interval", "-3"),
        (every(interval=0), "interval", "at least 1"),
        (every(interval="2"), "interval", "a whole number"),
        (every(interval=True), "interval", "a whole number"),
        (every("year"), "frequency", "minute or hour or day or week or month"),
        (every(hours=[25]), "schedule.hours", "from 0 to 23"),
        (every(hours=[1, -1, 30]), "schedule.hours", "-1, 30"),
        (every(hours="2"), "schedule.hours", "whole numbers"),
        (every(minutes=60), "schedule.minutes", "from 0 to 59"),
        (every(minutes=[]), "schedule.minutes", "both hours and minutes"),
        (every("week", hours=[], minutes=[], week_days="monday"), "schedule.hours", "both hours and minutes"),
        (every(week_days="monday"), "schedule.week_days", "the frequency week or month"),
        (every("week", week_days="Mo"), "schedule.week_days", "monday, tuesday"),
        (every("week", month_days=1), "schedule.month_days", "the frequency month"),
        (every("month", month_days=32), "schedule.month_days", "from 1 to 31"),
        (every("month", month_days=-1), "schedule.month_days", "from 1 to 31"),
        (every("month", month_days=1, week_days="monday"), "schedule.week_days", "remove one of them"),
        (every("hour"), "schedule.hours", "the frequency day or week or month"),
        (every("month", 12, month_days=30, start_time="2026-02-01T00:00:00"), "schedule", "it can never fire"),
        (None, "trigger", "there is none"),
        ("0 2 * * *", "trigger", "a str"),
    ],
)
def test_it_is_refused(trigger: Any, where: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_trigger(trigger, str)
    assert [problem.where for problem in error.value.problems] == [where]
    assert said in str(error.value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InputError) as error:
        read_trigger(every(interval=0, hours=25, minutes=61, time_zone="x", start_time="y"), str)
    assert len(error.value.problems) == 5


@pytest.mark.parametrize(
    ("trigger", "expected", "words"),
    [
        (cron(" 5  2 * * MON-fri ", time_zone=TimeZone.UTC), Cron("5 2 * * MON-fri"), "cron 5 2 * * MON-fri"),
        (cron("*/15,7 0-6/2 * * 0"), Cron("*/15,7 0-6/2 * * 0"), "cron */15,7 0-6/2 * * 0"),
        (
            every("Week", 2, [14, 2, 2], week_days=["Sunday", "monday"], time_zone=BERLIN),
            Recurrence("week", 2, (2, 14), (30,), ("monday", "sunday"), (), BERLIN),
            "every 2 weeks on monday, sunday at 02:30, 14:30",
        ),
        (RecurrenceTrigger(frequency="hour", interval=1), Recurrence("hour", 1), "every hour"),
        # An offset that is the zone's own says nothing new.
        (
            cron(start_time="2026-07-01T10:00:00+02:00", end_time=datetime(2026, 8, 1), time_zone=BERLIN),
            Cron("0 2 * * *", BERLIN, datetime(2026, 7, 1, 10), datetime(2026, 8, 1)),
            "cron 0 2 * * *",
        ),
        (cron(start_time="2026-07-01T10:00:00Z"), Cron("0 2 * * *", "UTC", datetime(2026, 7, 1, 10)), "cron 0 2 * * *"),
    ],
)
def test_it_is_read(trigger: Any, expected: Cron | Recurrence, words: str) -> None:
    read = read_trigger(trigger, str)
    assert read == expected
    assert in_words(read) == words


def test_the_time_zones_of_the_sdk_are_known_but_two() -> None:
    unknown = {str(each.value) for each in TimeZone if each.value not in windows_tz.win_tz}
    assert unknown == {"Kamchatka Standard Time", "Mid-Atlantic Standard Time"}
    assert zone("W. Europe Standard Time") == ZoneInfo("Europe/Berlin")
    with pytest.raises(InputError, match="time_zone"):
        read_trigger(cron(time_zone="Kamchatka Standard Time"), str)


HEAD = """\
from azure.ai.ml import command, dsl
from azure.ai.ml.entities import CronTrigger, JobSchedule

echo = command(name="echo", command="echo", environment="azureml:cpu:1")


@dsl.pipeline(default_compute="cpu-cluster")
def pipeline():
    echo()


def made(name, expression="0 2 * * *"):
    return JobSchedule(name=name, trigger=CronTrigger(expression=expression), create_job=pipeline())

"""
YAML = """\
$schema: https://azuremlschemas.azureedge.net/latest/schedule.schema.json
name: yearly
trigger: {type: cron, expression: "0 2 * * 1"}
create_job: ./job.yml
"""
JOB = """\
type: pipeline
jobs: {echo: {type: command, command: echo, environment: {image: "python:3.12"}, compute: azureml:cpu-cluster}}
"""


@pytest.fixture(autouse=True)
def _session() -> Iterator[None]:
    with session():
        yield


def found(target: Path) -> list[tuple[str, str]]:
    return [(each.name, each.member) for each in find_schedules(target)]


def test_schedules_are_found_in_a_folder(tmp_path: Path) -> None:
    write(
        tmp_path, "a.py", HEAD + "def nightly() -> JobSchedule:\n    return made('nightly')\n\nplain = made('plain')\n"
    )
    # Not declarations: without the annotation, or with something to be given.
    write(
        tmp_path,
        "b.py",
        HEAD + "def one():\n    return made('one')\ndef two(x) -> 'JobSchedule':\n    return made(x)\n",
    )
    write(tmp_path, "c.py", HEAD + "def three(name='three') -> 'JobSchedule':\n    return made(name)\nagain = None\n")
    write(tmp_path, "job.yml", JOB)
    write(tmp_path, "schedule.yml", YAML)
    write(tmp_path, "no.py", "raise SystemExit('not read: it does not say the word')\n")
    write(tmp_path, "deeper/d.py", HEAD + "four = made('four')\n")
    assert found(tmp_path) == [("nightly", "nightly"), ("plain", "plain"), ("three", "three"), ("yearly", "")]
    assert found(tmp_path / "schedule.yml") == [("yearly", "")]


def test_a_schedule_in_a_notebook_that_creates_it(tmp_path: Path) -> None:
    client = "from azure.ai.ml import MLClient\nml_client = MLClient.from_config()"
    create = "nightly = ml_client.schedules.begin_create_or_update(schedule=nightly).result()\nassert nightly.name"
    write_notebook(tmp_path, client, HEAD, "nightly = made('nightly')", create)
    assert found(tmp_path / "notebook.ipynb") == [("nightly", "nightly")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.py", HEAD, "it declares no schedule"),
        ("a.py", HEAD + "x = made('x')\ny = made('x')\n", "declares one with this name too"),
        ("a.py", HEAD + "x = made('x', 'garbage')\n", r"schedule x, key trigger.expression \(.*a.py:x\)"),
        ("a.py", HEAD + "x = made('no spaces')\n", "letters, digits"),
        ("a.py", HEAD + "def x() -> JobSchedule:\n    return 1 / 0\n", r"a.py:\d+: ZeroDivisionError"),
        ("a.py", HEAD + "def x() -> JobSchedule:\n    return 3\n", "a int"),
        ("a.py", HEAD + "x = JobSchedule(name='x', trigger=None, create_job=pipeline())\n", "there is none"),
        (
            "a.py",
            HEAD + "x = JobSchedule(name='x', trigger=None, create_job=echo)\n",
            "a Command\n(.|\n)*Azure ML schedules only pipelines(.|\n)*make the job a step of a pipeline",
        ),
        (
            "a.yml",
            "name: x\ntrigger: {type: cron, expression: '0 3 * * *'}\ncreate_job: {type: command, command: echo}\n",
            r"key create_job \(.*a.yml:3\): a job's own keys(.|\n)*write: create_job: FILE",
        ),
        ("a.py", "JobSchedule = (\n", "a.py:1: it is not Python"),
        ("a.py", "import nothing_like_it  # JobSchedule\n", "a.py:1: there is no module nothing_like_it"),
        (
            "a.yml",
            "name: x\ntrigger: {type: cron, expression: '0 3 * * *'}\ncreate_job: no.yml\n",
            "no.yml does not exist",
        ),
        ("a.yml", "a: [", "not YAML"),
        ("a.yml", "name: x\ntrigger: {type: cron}\ncreate_job: azureml:job\n", "a.yml"),
        ("a.txt", "", "neither Python nor YAML"),
        ("a.py", None, "no such file"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_told(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        write(tmp_path, name, text)
    with pytest.raises(InputError, match=said):
        find_schedules(tmp_path / name)


@pytest.mark.parametrize(
    ("create_job", "where"),
    [
        ("./job.yml", r"key settings.default_compute \(.*job.yml:2\)"),
        ("\n  job: ./job.yml\n  inputs: {}", r"key settings.default_compute \(.*job.yml:2\)"),
    ],
)
def test_a_compute_without_its_prefix(tmp_path: Path, create_job: str, where: str) -> None:
    """azure-ai-ml's message has one of the two choices only, and no fix."""
    write(tmp_path, "job.yml", JOB.replace("jobs:", "settings: {default_compute: v100}\njobs:"))
    schedule = write(tmp_path, "schedule.yml", YAML.replace("./job.yml", create_job))
    with pytest.raises(InputError) as raised:
        find_schedules(schedule)
    (problem,) = raised.value.problems
    assert re.fullmatch(where, problem.where), problem.where
    assert (problem.found, problem.expected) == ("'v100'", "azureml:NAME for a cluster, or serverless")
    assert problem.fix == "write azureml:v100"
