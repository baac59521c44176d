"""Mistakes in components, environments, schedules, allranks.yaml and the configuration of Azure ML."""

from __future__ import annotations

import json

from bad_inputs.python_files import RIGHT
from bad_inputs.row import Row, job

SCHEMAS = "https://azuremlschemas.azureedge.net/latest"
COMPONENT = {
    "$schema": f"{SCHEMAS}/commandComponent.schema.json",
    "type": "command",
    "name": "train",
    "version": "1",
    "display_name": "Train",
    "description": "Train a model.",
    "command": "echo ${{inputs.lr}}",
    "environment": "azureml:cpu:1",
    "inputs": {"lr": {"type": "number", "default": 0.1, "description": "Learning rate."}},
}
DOCKERFILE = "FROM ubuntu:24.04\n"
ENVIRONMENT = {
    "environments/torch/Dockerfile": DOCKERFILE,
    "environments/torch/environment.yaml": "name: torch\nbuild: {path: .}\n",
    "environments/torch/expect.yaml": "{}\n",
}
SCHEDULE = """\
from azure.ai.ml import command, dsl
from azure.ai.ml.entities import CronTrigger, JobSchedule, RecurrencePattern, RecurrenceTrigger

say = command(name="say", command="echo", environment="azureml:cpu:1")

@dsl.pipeline()
def one():
    say()

nightly = JobSchedule(name="nightly", trigger={trigger}, create_job=one())
"""


def _component(*said: str, **keys: object) -> Row:
    return Row("check component.yaml", said, files={"component.yaml": json.dumps(COMPONENT | keys, indent=2)})


def _port(*said: str, name: str = "lr", **port: object) -> Row:
    return _component(*said, inputs={name: port}, command=f"echo ${{{{inputs.{name}}}}}")


def _schedule(trigger: str, *said: str) -> Row:
    return Row("schedules next 3 file.py", said, files={"file.py": SCHEDULE.replace("{trigger}", trigger)})


def _mapped(text: str, *said: str) -> Row:
    return Row("check job.yml", said, files={"job.yml": job(), "allranks.yaml": text})


def _environment(*said: str, **files: str) -> Row:
    named = {f"environments/torch/{name.replace('_', '.')}": text for name, text in files.items()}
    return Row("environments check", said, files=ENVIRONMENT | named)


def _submit(options: str, *said: str, config: str | None = None) -> Row:
    files = RIGHT | ({} if config is None else {"config.json": config})
    return Row(f"submit right.py --set data=data.csv --compute cpu {options}".strip(), said, files=files)


ROWS = {
    "a component without a name": Row(
        "check component.yaml",
        ("component.yaml", "name"),
        files={
            "component.yaml": json.dumps({key: value for key, value in COMPONENT.items() if key != "name"}, indent=2)
        },
    ),
    "a component's name with spaces": _component("component.yaml", "name", name="my train"),
    "a component's tag": _component("component.yaml", "tag", tags={"level": 3}),
    "a component without a command": Row(
        "check component.yaml",
        ("component.yaml", "command"),
        files={
            "component.yaml": json.dumps({key: value for key, value in COMPONENT.items() if key != "command"}, indent=2)
        },
    ),
    "a component with a wrong key": Row(
        "check component.yaml",
        ("component.yaml", "comand", "command"),
        files={"component.yaml": json.dumps(COMPONENT, indent=2).replace('"command":', '"comand":')},
    ),
    "a component's unknown input": _component("component.yaml", "inputs.rate", command="echo ${{inputs.rate}}"),
    "a component's unknown type": _port("component.yaml", "flot", type="flot"),
    "a component's range": _port(
        "component.yaml", "min 2 is above max 1", "exchange them", type="number", min=2, max=1, description="a"
    ),
    "a component's default above its range": _port(
        "component.yaml", "default 2", "at most 1", type="number", max=1, default=2, description="a"
    ),
    "a component's default of another type": _port(
        "component.yaml",
        "default 'many' of type integer",
        "a whole number",
        type="integer",
        default="many",
        description="a",
    ),
    "a component's choice": _port(
        "component.yaml", "default 'c'", "one of a, b", type="string", enum=["a", "b"], default="c", description="a"
    ),
    "a port with a space": _port("component.yaml", "my lr", name="my lr", type="number", description="a"),
    "a component in Python that raises": Row(
        "check component.py",
        ("component.py", "ZeroDivisionError"),
        files={"component.py": "from mldesigner import command_component\n1 / 0\n"},
    ),
    "a folder without components": Row("components", ("components",)),
    "a folder of components that is gone": Row("components gone", ("gone",)),
    "a folder of components that is a file": Row("components job.yml", ("job.yml",), files={"job.yml": job()}),
    "components to register that are gone": Row("register --dry-run --registry r --components gone", ("gone",)),
    "an export over other files": Row(
        "export out --components components",
        ("out",),
        files={"components/train/component.yaml": json.dumps(COMPONENT, indent=2), "out/notes.txt": "mine"},
    ),
    "an export over a file": Row(
        "export out --components components",
        ("out",),
        files={"components/train/component.yaml": json.dumps(COMPONENT, indent=2), "out": "mine"},
    ),
    "an export of an unknown component": Row(
        "export out trian --components components",
        ("trian", "train"),
        files={"components/train/component.yaml": json.dumps(COMPONENT, indent=2)},
    ),
    "no environments": Row("environments list", ("environments", "--folder DIR")),
    "environments that are gone": Row("environments list --folder gone", ("gone", "no environment", "Dockerfile")),
    "an unknown environment": Row("environments check trch", ("no environment 'trch'", "torch"), files=ENVIRONMENT),
    "an unknown environment to build": Row(
        "environments build trch", ("no environment 'trch'", "torch"), files=ENVIRONMENT
    ),
    "another engine": Row("environments build torch --engine kaniko", ("kaniko", "buildah"), files=ENVIRONMENT),
    "a Dockerfile that is empty": _environment("Dockerfile", Dockerfile=""),
    "a Dockerfile without FROM": _environment("Dockerfile", Dockerfile="RUN true\n"),
    "a Dockerfile with an unknown word": _environment("Dockerfile", Dockerfile="FROM ubuntu:24.04\nRUNN true\n"),
    "a Dockerfile without a version": _environment("Dockerfile", Dockerfile="FROM ubuntu\n"),
    "an environment.yaml that is no YAML": _environment(
        "environment.yaml:1", "it is not YAML", environment_yaml="name: [\n"
    ),
    "an environment.yaml that is a list": _environment("environment.yaml", "keys and values", environment_yaml="- a\n"),
    "an environment.yaml that is binary": Row(
        "environments check",
        ("environment.yaml", "UTF-8"),
        files=ENVIRONMENT | {"environments/torch/environment.yaml": b"\xff\x00"},
    ),
    "an expect.yaml with an unknown section": _environment("expect.yaml:1", "section", expect_yaml="gpus: {}\n"),
    "an expect.yaml with an unknown probe": _environment("expect.yaml", "tourch", expect_yaml="every: {tourch: 1}\n"),
    "an expect.yaml with a list": _environment(
        "expect.yaml:1", "section 'every' is ['a']", "keys and values", expect_yaml="every: [a]\n"
    ),
    "a cron of one word": _schedule('CronTrigger(expression="daily")', "expression", "'daily'", "five fields"),
    "a cron with seconds": _schedule(
        'CronTrigger(expression="0 0 2 * * 1")', "expression", "6 fields", "omit the seconds"
    ),
    "a cron at minute 61": _schedule('CronTrigger(expression="61 2 * * *")', "expression", "61 2 * * *", "five fields"),
    "a cron of a day of the month": _schedule(
        'CronTrigger(expression="0 2 1 * *")', "expression", "ignores", "month_days"
    ),
    "a time zone": _schedule(
        'CronTrigger(expression="0 2 * * *", time_zone="Mars")',
        "time_zone",
        "'Mars'",
        "one of the names that Azure ML has",
    ),
    "a start time": _schedule(
        'CronTrigger(expression="0 2 * * *", start_time="soon")', "start_time", "'soon'", "YYYY-MM-DDThh:mm:ss"
    ),
    "a frequency": _schedule('RecurrenceTrigger(frequency="hourly", interval=1)', "frequency", "hourly", "hour"),
    "an interval below 1": _schedule('RecurrenceTrigger(frequency="day", interval=0)', "interval", "0", "1"),
    "an interval as text": _schedule('RecurrenceTrigger(frequency="day", interval="two")', "interval", "two"),
    "an hour 25": _schedule(
        'RecurrenceTrigger(frequency="day", interval=1, schedule=RecurrencePattern(hours=[25], minutes=[0]))',
        "hours",
        "25",
        "0 to 23",
    ),
    "an end before the start": _schedule(
        'CronTrigger(expression="0 2 * * *", start_time="2030-01-01T00:00:00", end_time="2029-01-01T00:00:00")',
        "end_time",
    ),
    "no schedule": Row("schedules next 3 right.py", ("right.py", "JobSchedule"), files=RIGHT),
    "a schedule without a trigger": Row(
        "schedules next 3 file.yml",
        ("file.yml", "trigger"),
        files={
            "file.yml": f"$schema: {SCHEMAS}/schedule.schema.json\nname: a\ncreate_job: ./job.yml\n",
            "job.yml": job(),
        },
    ),
    "an allranks.yaml that is no YAML": _mapped("data: [", "allranks.yaml:1", "it is not YAML"),
    "an allranks.yaml of aliases": _mapped("data: &a [*a]", "allranks.yaml:1", "it contains itself"),
    "an allranks.yaml that is a list": _mapped("- a", "allranks.yaml", "it is a list"),
    "an unknown section": _mapped("dta: {}", "key dta (allranks.yaml:1)", "no such section", "did you mean data?"),
    "a section that is a list": _mapped("data: [a]", "key data (allranks.yaml:1)", "keys and paths"),
    "an entry without a path": _mapped("data: {a:1: }", "allranks.yaml:1"),
    "an entry that is a number": _mapped(
        'data: {"a:1": 7}', "key data.a:1 (allranks.yaml:1)", "7", "a path, relative to the file"
    ),
    "an entry on Azure ML": _mapped(
        'data: {"a:1": "azureml:b:2"}', "key data.a:1", "is not on this machine", "get a copy"
    ),
    "an entry that is no id": _mapped('environments: {"a b:": x}', "allranks.yaml:1"),
    "no workspace on Azure ML": _submit("", "workspace", "no subscription", "--subscription ID", "config.json"),
    "a config.json that is no JSON": _submit(
        "", "config.json", "it is not JSON", "download it in the studio", config="{"
    ),
    "a config.json without a name": _submit(
        "", "config.json", "it has no workspace_name", config='{"subscription_id": "a", "resource_group": "b"}'
    ),
    "a config.json that is a list": _submit("", "config.json", "does not name a workspace", config="[1]"),
    "a config.json that is gone": _submit("--config gone.json", "gone.json", "there is no such file"),
    "a workspace that is a folder": _submit("--workspace ./runs", "--workspace ./runs", "not a valid name", "--folder"),
    "a workspace and a registry": Row(
        "register --dry-run --workspace a --registry b", ("--registry b", "the workspace a is given too", "one of them")
    ),
    "steps without a compute": Row(
        "submit right.py --set data=data.csv --subscription s --resource-group g --workspace work",
        ("--compute", "--size"),
        files=RIGHT,
    ),
    "a size that Azure does not have": Row(
        "submit right.py --set data=data.csv --size Standard_GPU_9 --dry-run", ("Standard_GPU_9",), files=RIGHT
    ),
}
