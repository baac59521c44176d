"""Command jobs and pipelines with wrong keys and values."""

import json
import os
from pathlib import Path

from bad_inputs.row import Make, Row, job, pipeline

DATA = "${{inputs.data}}"


def _of(text: str, *said: str, make: Make | None = None) -> Row:
    return Row("run file.yml", said, files={"file.yml": text}, make=make)


def _checked(text: str, *said: str) -> Row:
    return Row("check file.yml", said, files={"file.yml": text})


def _with(path: str) -> str:
    return job(command=f"cat {DATA}", inputs={"data": {"type": "uri_file", "path": path}})


def _in_code(make: Make) -> Make:
    def made(folder: Path) -> None:
        (folder / "code").mkdir()
        make(folder / "code")

    return made


def _sweep(**keys: object) -> str:
    """A sweep as a job."""
    trial = {"command": "echo ${{search_space.lr}}", "environment": "azureml:cpu:1"}
    sweep = {
        "type": "sweep",
        "trial": trial,
        "search_space": {"lr": {"type": "uniform", "min_value": 0, "max_value": 1}},
        "sampling_algorithm": "random",
        "objective": {"goal": "minimize", "primary_metric": "loss"},
        "limits": {"max_total_trials": 4},
    }
    return json.dumps(sweep | keys)


ROWS = {
    "a sweep from 1 to 0": _of(
        _sweep(search_space={"lr": {"type": "uniform", "min_value": 1, "max_value": 0}}),
        "step file, key search_space.lr (file.yml:1)",
        "min_value 1 is not below max_value 0",
    ),
    "a sweep that is bound to a pipeline": _of(
        _sweep(inputs={"data": "${{parent.inputs.data}}"}), "key inputs", "${{parent.inputs.data}}"
    ),
    "a sweep without a trial": _of(json.dumps({"type": "sweep"}), "file.yml", "trial"),
    "a million instances": _checked(
        job(resources={"instance_count": 1_000_000}),
        "step file, key resources.instance_count",
        "1,000,000",
        "at most 65,000",
    ),
    "more instances than this machine holds": _of(
        job(resources={"instance_count": 60_000}), "60,000 instances", "this machine", "fewer"
    ),
    "a million processes": _of(
        job(distribution={"type": "pytorch", "process_count_per_instance": 1_000_000}),
        "distribution.process_count_per_instance",
        "1,000,000",
        "at most 1,792",
    ),
    "an unknown key": _of(job(computte="cpu"), "key computte", "no such key"),
    "no command": _of('environment: "azureml:cpu:1"\ntype: command\n', "command", "the key is missing"),
    "a command that is a list": _of(job(command=["echo"]), "key command"),
    "no environment": _of("command: echo\n", "environment", "the key is missing"),
    "an environment file that is gone": _of(job(environment="file:gone.yml"), "environment", "gone.yml does not exist"),
    "inputs that are a list": _of(job(inputs=["a"]), "key inputs"),
    "an input that is a list": _of(job(inputs={"a": [1]}), "key inputs.a"),
    "a variable of several values": _of(job(environment_variables={"A": {"b": 1}}), "environment_variables"),
    "a name with a control character": _of(job(inputs={"a\tb": 1}, command="echo ${{inputs.a\tb}}"), "inputs"),
    "code that is a number": _of(job(code=7), "code"),
    "code on Azure ML": _of(job(code="azureml://datastores/x/paths/y"), "code", "is not on this machine", "get a copy"),
    "a pipe in the code": _of(
        job(code="./code"),
        "code/pipe",
        "not a regular file",
        ".amlignore",
        make=_in_code(lambda code: os.mkfifo(code / "pipe")),
    ),
    "data that is a pipe": _of(
        _with("./data"), "data is a FIFO", "a file", make=lambda folder: os.mkfifo(folder / "data")
    ),
    "data that is a loop of links": _of(
        _with("./data"),
        "data cannot be read",
        "symbolic links",
        make=lambda folder: (folder / "data").symlink_to("data"),
    ),
    "data that is a dangling link": _of(
        _with("./data"), "data is a link to gone", make=lambda folder: (folder / "data").symlink_to("gone")
    ),
    "data with a name of 300 characters": _of(_with("./" + "x" * 300), "cannot be read", "File name too long"),
    "an output where a folder is": _of(
        job(command="echo > ${{outputs.a}}", outputs={"a": {"type": "uri_file", "path": "./code"}}),
        "outputs.a",
        "code is a folder",
        make=lambda folder: (folder / "code").mkdir(),
    ),
    "jobs without a type": _of("jobs: {a: {command: echo}}\n", "it has jobs, but no type", "type: pipeline"),
    "a component without a command": _of(
        "$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json\nname: a\n",
        "key command",
        "is missing",
    ),
    "no jobs": _of(pipeline(), "jobs"),
    "a job that is a number": _of("type: pipeline\njobs: {a: 1}\n", "step a"),
    "a component that is a folder": _of(
        pipeline(a={"type": "command", "component": "./part"}),
        "step a, key component",
        "part",
        make=lambda folder: (folder / "part").mkdir(),
    ),
    "a component that is empty": Row(
        "run file.yml",
        ("part.yml", "it is empty"),
        files={"file.yml": pipeline(a={"type": "command", "component": "./part.yml"}), "part.yml": ""},
    ),
}
