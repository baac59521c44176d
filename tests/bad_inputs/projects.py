"""Mistakes in components, environments, schedules and the configuration of Azure ML."""

from bad_inputs.python_files import RIGHT
from bad_inputs.row import Row, job

SCHEMAS = "https://azuremlschemas.azureedge.net/latest"
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


def _schedule(trigger: str, *said: str) -> Row:
    return Row("schedules next 3 file.py", said, files={"file.py": SCHEDULE.replace("{trigger}", trigger)})


def _environment(*said: str, **files: str) -> Row:
    named = {f"environments/torch/{name.replace('_', '.')}": text for name, text in files.items()}
    return Row("environments check", said, files=ENVIRONMENT | named)


def _submit(options: str, *said: str, config: str | None = None) -> Row:
    files = RIGHT | ({} if config is None else {"config.json": config})
    return Row(f"submit right.py --set data=data.csv --compute cpu {options}".strip(), said, files=files)


ROWS = {
    "a component in Python that raises": Row(
        "check component.py",
        ("component.py", "ZeroDivisionError"),
        files={"component.py": "from mldesigner import command_component\n1 / 0\n"},
    ),
    "a folder without components": Row("components", ("components",)),
    "a folder of components that is a file": Row("components job.yml", ("job.yml",), files={"job.yml": job()}),
    "components to register that are gone": Row("register --dry-run --registry r --components gone", ("gone",)),
    "no environments": Row("environments list", ("environments", "--folder DIR")),
    "another engine": Row("environments build torch --engine kaniko", ("kaniko", "buildah"), files=ENVIRONMENT),
    "an environment.yaml that is no YAML": _environment(
        "environment.yaml:1", "it is not YAML", environment_yaml="name: [\n"
    ),
    "an expect.yaml whose section is a number": Row(
        "environments verify image --environment torch",
        ("expect.yaml:1", "section"),
        files=ENVIRONMENT | {"environments/torch/expect.yaml": "cpu: 3\n"},
    ),
    "a Dockerfile that includes nothing": _environment(
        "Dockerfile:1", "gone", "No such file", Dockerfile="# allranks: include gone\nFROM a:1\n"
    ),
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
