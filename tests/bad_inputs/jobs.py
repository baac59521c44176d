"""Command jobs and pipelines with wrong keys and values."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from bad_inputs.row import Make, Row, job, pipeline, step

DATA = "${{inputs.data}}"


def _of(text: str, *said: str, make: Make | None = None) -> Row:
    return Row("run file.yml", said, files={"file.yml": text}, make=make)


def _checked(text: str, *said: str) -> Row:
    return Row("check file.yml", said, files={"file.yml": text})


def _with(path: str) -> str:
    return job(command=f"cat {DATA}", inputs={"data": {"type": "uri_file", "path": path}})


def _socket(folder: Path) -> None:
    # The path of a socket may have 108 characters.
    before = Path.cwd()
    os.chdir(folder)
    socket.socket(socket.AF_UNIX).bind("data")
    os.chdir(before)


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
    "a sweep of an unknown distribution": _of(
        _sweep(search_space={"lr": {"type": "unifrom"}}), "search_space.lr", "file.yml:1", "did you mean uniform?"
    ),
    "a sweep to no end": _of(
        _sweep(search_space={"lr": {"type": "uniform", "min_value": 1e-3}}),
        "search_space.lr.max_value",
        "the key is missing",
    ),
    "a grid of any numbers": _of(
        _sweep(sampling_algorithm="grid"), "search_space.lr", "uniform, which grid sampling does not support", "choice"
    ),
    "no trial at once": _of(
        _sweep(limits={"max_total_trials": 4, "max_concurrent_trials": 0}), "limits.max_concurrent_trials", "1 to 1000"
    ),
    "a sweep that is bound to a pipeline": _of(
        _sweep(inputs={"data": "${{parent.inputs.data}}"}), "key inputs", "${{parent.inputs.data}}"
    ),
    "a sweep with another policy": _of(
        _sweep(early_termination={"type": "bandits"}), "early_termination.type", "did you mean bandit?"
    ),
    "a sweep without an objective": _of(_sweep(objective={}), "file.yml:1", "primary_metric"),
    "a sweep without a trial": _of(json.dumps({"type": "sweep"}), "file.yml", "trial"),
    "a million instances": _checked(
        job(resources={"instance_count": 1_000_000}),
        "step file, key resources.instance_count",
        "1,000,000",
        "at most 65,000",
    ),
    "a million connected instances": _of(
        job(resources={"instance_count": 1_000_000}, distribution={"type": "pytorch"}), "1,000,000", "at most 4,000"
    ),
    "a million instances in a dry run": Row(
        "run file.yml --dry-run",
        ("1,000,000", "at most 65,000"),
        files={"file.yml": job(resources={"instance_count": 1_000_000})},
    ),
    "instances with 40 digits": _of(
        job(resources={"instance_count": 10**40}), "resources.instance_count", "at most 65,000"
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
    "no instances": _of(job(resources={"instance_count": 0}), "resources.instance_count", "at least 1"),
    "minus one instance": _of(job(resources={"instance_count": -1}), "resources.instance_count", "-1", "at least 1"),
    "instances as text": _of(
        job(resources={"instance_count": "two"}), "resources.instance_count", "'two'", "a whole number"
    ),
    "half an instance": _of(
        job(resources={"instance_count": 1.5}), "resources.instance_count", "1.5", "a whole number"
    ),
    "no processes": _of(
        job(distribution={"type": "pytorch", "process_count_per_instance": 0}),
        "step file, key distribution.process_count_per_instance",
        "at least 1",
    ),
    "an unknown distribution": _of(
        job(distribution={"type": "jaxx"}), "distribution", "jaxx", "pytorch", "mpi", "tensorflow", "ray"
    ),
    "a distribution as text": _of(job(distribution="pytorch"), "distribution"),
    "an unknown key of a distribution": _of(
        job(distribution={"type": "pytorch", "processes": 2}), "distribution.processes", "no such key"
    ),
    "a time-out of no number": _of(job(limits={"timeout": "long"}), "limits.timeout", "'long'", "a whole number"),
    "a time-out of NaN": _of(
        '{command: echo, environment: "azureml:cpu:1", limits: {timeout: .nan}}', "limits.timeout", "nan"
    ),
    "a time-out in the past": _of(job(limits={"timeout": -5}), "limits.timeout", "-5", "more than 0 seconds"),
    "a shm_size of no size": _of(job(resources={"shm_size": "lots"}), "resources.shm_size", "lots", "2g"),
    "no shm_size": _of(job(resources={"shm_size": "0g"}), "resources.shm_size", "a size such as 2g"),
    "an unknown key": _of(job(computte="cpu"), "key computte", "no such key"),
    "no command": _of('environment: "azureml:cpu:1"\ntype: command\n', "command", "the key is missing"),
    "a command that is a list": _of(job(command=["echo"]), "key command"),
    "no environment": _of("command: echo\n", "environment", "the key is missing"),
    "an environment that is a number": _of(job(environment=7), "key environment", "7"),
    "an environment file that is gone": _of(job(environment="file:gone.yml"), "environment", "gone.yml does not exist"),
    "inputs that are a list": _of(job(inputs=["a"]), "key inputs"),
    "an input that is a list": _of(job(inputs={"a": [1]}), "key inputs.a"),
    "an input of an unknown type": _of(
        job(inputs={"a": {"type": "uri_fil", "path": "x"}}), "key inputs.a", "uri_fil", "uri_file"
    ),
    "an unknown mode": _of(
        job(inputs={"a": {"type": "uri_file", "path": "file.yml", "mode": "copy"}}), "inputs.a", "copy", "ro_mount"
    ),
    "an output of an unknown type": _of(job(outputs={"a": {"type": "model"}}), "outputs.a", "model"),
    "an unknown input in the command": _of(job(command="echo ${{inputs.rate}}"), "inputs.rate", "no such input"),
    "an unknown output in the command": _of(job(command="echo ${{outputs.model}}"), "outputs.model"),
    "an open optional part": _of(job(command="echo $[[--a ${{inputs.a}}", inputs={"a": 1}), "command", "$[["),
    "an unknown expression": _of(job(command="echo ${{input.a}}", inputs={"a": 1}), "${{input.a}}"),
    "variables that are a list": _of(job(environment_variables=["A=1"]), "environment_variables"),
    "a variable of several values": _of(job(environment_variables={"A": {"b": 1}}), "environment_variables"),
    "a name with a control character": _of(job(inputs={"a\tb": 1}, command="echo ${{inputs.a\tb}}"), "inputs"),
    "code that is gone": _of(job(code="./gone"), "code", "gone does not exist"),
    "code that is a number": _of(job(code=7), "code"),
    "code on Azure ML": _of(job(code="azureml://datastores/x/paths/y"), "code", "is not on this machine", "get a copy"),
    "a pipe in the code": _of(
        job(code="./code"),
        "code/pipe",
        "not a regular file",
        ".amlignore",
        make=_in_code(lambda code: os.mkfifo(code / "pipe")),
    ),
    "a socket in the code": _of(
        job(code="./code"), "code/data", "not a regular file", ".amlignore", make=_in_code(_socket)
    ),
    "a dangling link in the code": _of(
        job(code="./code"),
        "code/link",
        "cannot be read",
        make=_in_code(lambda code: (code / "link").symlink_to("gone")),
    ),
    "a loop of links in the code": _of(
        job(code="./code"),
        "code/link",
        "cannot be read",
        make=_in_code(lambda code: (code / "link").symlink_to("link")),
    ),
    "data that is gone": _of(_with("./gone.csv"), "key inputs.data", "gone.csv does not exist", "--set data=PATH"),
    "data that is a folder": _of(_with("/usr"), "/usr is a folder", "a file (uri_file)"),
    "data that is a pipe": _of(
        _with("./data"), "data is a FIFO", "a file", make=lambda folder: os.mkfifo(folder / "data")
    ),
    "data that is a socket": _of(_with("./data"), "data is a socket", "a file", make=_socket),
    "data that is a device": _of(_with("/dev/zero"), "/dev/zero is a device", "a file"),
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
    "data on Azure ML": _of(_with("azureml://datastores/x/paths/y"), "inputs.data", "allranks.yaml"),
    "an output where a folder is": _of(
        job(command="echo > ${{outputs.a}}", outputs={"a": {"type": "uri_file", "path": "./code"}}),
        "outputs.a",
        "code is a folder",
        make=lambda folder: (folder / "code").mkdir(),
    ),
    "a type that nobody has": _of("type: train\n", "key type", "type train", "a pipeline, a command job or a sweep"),
    "jobs without a type": _of("jobs: {a: {command: echo}}\n", "it has jobs, but no type", "type: pipeline"),
    "a component without a command": _of(
        "$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json\nname: a\n",
        "key command",
        "is missing",
    ),
    "no jobs": _of(pipeline(), "jobs"),
    "jobs that are a list": _of("type: pipeline\njobs: [a]\n", "key jobs", "at least one job"),
    "a job that is a number": _of("type: pipeline\njobs: {a: 1}\n", "step a"),
    "a step named in capitals": _of(pipeline(Train=step()), "step Train", "'Train' cannot be the name", "lower-case"),
    "a step with a space": _of(pipeline(**{"my step": step()}), "'my step' cannot be the name", "lower-case"),
    "an input of an unknown step": _of(
        pipeline(a=step(command=f"cat {DATA}", inputs={"data": "${{parent.jobs.b.outputs.x}}"})),
        "step a, key inputs.data",
        "refers to an unknown step",
        "one of a",
    ),
    "an unknown output of a step": _of(
        pipeline(a=step(), b=step(command=f"cat {DATA}", inputs={"data": "${{parent.jobs.a.outputs.x}}"})),
        "step b",
        "x",
    ),
    "an unknown input of the pipeline": _of(
        pipeline(a=step(command=f"echo {DATA}", inputs={"data": "${{parent.inputs.x}}"})),
        "step a, key inputs.data",
        "refers to an unknown input",
        "no inputs",
    ),
    "steps in a circle": _of(
        pipeline(
            a=step(
                command="cat ${{inputs.x}} > ${{outputs.y}}",
                inputs={"x": "${{parent.jobs.b.outputs.y}}"},
                outputs={"y": {"type": "uri_file"}},
            ),
            b=step(
                command="cat ${{inputs.x}} > ${{outputs.y}}",
                inputs={"x": "${{parent.jobs.a.outputs.y}}"},
                outputs={"y": {"type": "uri_file"}},
            ),
        ),
        "file.yml:1",
        "a -> b -> a",
        "an order",
    ),
    "a component that is gone": _of(
        pipeline(a={"type": "command", "component": "./gone.yml"}), "step a, key component", "./gone.yml does not exist"
    ),
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
    "a component on Azure ML": _of(
        pipeline(a={"type": "command", "component": "azureml:train:3"}),
        "step a, key component",
        "train:3",
        "allranks.yaml",
    ),
}
