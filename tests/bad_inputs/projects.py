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
    "a component with a wrong key": Row(
        "check component.yaml",
        ("component.yaml", "comand", "command"),
        files={"component.yaml": json.dumps(COMPONENT, indent=2).replace('"command":', '"comand":')},
    ),
    "a component's range": _port(
        "component.yaml", "min 2 is above max 1", "exchange them", type="number", min=2, max=1, description="a"
    ),
    "a component in Python that raises": Row(
        "check component.py",
        ("component.py", "ZeroDivisionError"),
        files={"component.py": "from mldesigner import command_component\n1 / 0\n"},
    ),
    "a folder without components": Row("components", ("components",)),
    "a folder of components that is a file": Row("components job.yml", ("job.yml",), files={"job.yml": job()}),
    "components to register that are gone": Row("register --dry-run --registry r --components gone", ("gone",)),
    "no environments": Row("environments list", ("environments", "--folder DIR")),
    "an unknown environment": Row("environments check trch", ("no environment 'trch'", "torch"), files=ENVIRONMENT),
    "another engine": Row("environments build torch --engine kaniko", ("kaniko", "buildah"), files=ENVIRONMENT),
    "an environment.yaml that is no YAML": _environment(
        "environment.yaml:1", "it is not YAML", environment_yaml="name: [\n"
    ),
    "an expect.yaml with an unknown section": _environment("expect.yaml:1", "section", expect_yaml="gpus: {}\n"),
    "a cron of one word": _schedule('CronTrigger(expression="daily")', "expression", "'daily'", "five fields"),
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
    "no workspace on Azure ML": _submit("", "workspace", "no subscription", "--subscription ID", "config.json"),
    "a config.json that is no JSON": _submit(
        "", "config.json", "it is not JSON", "download it in the studio", config="{"
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
