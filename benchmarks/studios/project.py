"""A project with thousands of runs, hundreds of curves, a log of 1 GB, and large pipelines."""

import math
from collections.abc import Iterator
from pathlib import Path

from allranks.history.records import Execution, Point, RankRecord, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.workspace import Workspace

RUNS = 5000
COMPARED = tuple(f"compared_{number:03}" for number in range(100))
METRICS = tuple(f"group_{number // 10}/metric_{number % 10}" for number in range(50))
POINTS = 200
"""Of each curve."""
LOGGED = "logged"
"""The run whose log is large, and whose last step is still running."""
LOG_BYTES = 1 << 30

COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
name: pass_on
version: "1"
type: command
inputs:
  data: {type: uri_folder, optional: true}
  rate: {type: number, default: 0.1, min: 0, max: 1}
outputs:
  result: {type: uri_folder}
command: echo $[[--data ${{inputs.data}}]] --rate ${{inputs.rate}} > ${{outputs.result}}/said
environment: azureml:AzureML-pytorch:1
"""


def make_project(folder: Path) -> None:
    """Write the project's pipelines and its history."""
    (folder / "pass_on.yaml").write_text(COMPONENT, encoding="utf-8")
    (folder / "hundred.py").write_text(python_pipeline(100), encoding="utf-8")
    (folder / "thousand.yaml").write_text(yaml_pipeline(1000), encoding="utf-8")
    workspace = Workspace(folder / ".allranks")
    workspace.make()
    with Store(workspace.database) as store:
        store.connection.execute("PRAGMA synchronous = OFF")
        for number in range(RUNS - len(COMPARED) - 1):
            store.add_run(ended_run(f"run_{number:04}", number), "{}")
        for number, name in enumerate(COMPARED):
            run = ended_run(name, RUNS + number)
            store.add_run(run, "{}")
            store.add_points(name, "train", curves(number))
        store.add_run(logged_run(workspace), "{}")


def python_pipeline(count: int) -> str:
    """Return a chain of so many nodes."""
    nodes = ["    step_0 = pass_on()"]
    nodes += [f"    step_{at} = pass_on(data=step_{at - 1}.outputs.result, rate=0.5)" for at in range(1, count)]
    head = "from azure.ai.ml import load_component\nfrom azure.ai.ml.dsl import pipeline\n\n"
    head += 'pass_on = load_component("pass_on.yaml")\n\n\n@pipeline()\ndef chain():\n'
    return head + "\n".join(nodes) + "\n"


def yaml_pipeline(count: int) -> str:
    """Return so many nodes in rows of 20, each connected to one of the row above."""
    lines = ["type: pipeline", "display_name: Thousand", "jobs:"]
    for at in range(count):
        lines += [f"  step_{at}:", "    type: command", "    component: pass_on.yaml"]
        if at >= 20:
            lines += ["    inputs:", f"      data: ${{{{parent.jobs.step_{at - 20 + at % 3 - 1}.outputs.result}}}}"]
    return "\n".join(lines) + "\n"


def ended_run(name: str, number: int) -> RunRecord:
    created = 1.75e9 + 60 * number
    run = RunRecord(name, "train", f"Train {number % 40}", "train.py", "rack", created=created, ended=created + 50)
    run.status = Status.FAILED if number % 9 == 0 else Status.COMPLETED
    run.inputs = {"learning_rate": f"{0.1 / (number + 1):.3g}", "seed": str(number), "model": f"model_{number % 7}"}
    run.results = {"accuracy": 1 - 1 / (number + 2), "loss": 2 / (number + 1), "seconds": 1.5 * number}
    run.executions = [Execution(created, created + 50)]
    step = StepRecord("train", "", "train", "pytorch", 2, 2, (), run.status, 0, created + 1, created + 49)
    run.steps = [step]
    return run


def curves(number: int) -> Iterator[tuple[str, Point]]:
    for step in range(POINTS):
        for at, metric in enumerate(METRICS):
            value = math.exp(-step / (40 + number)) + math.sin(step * (at + 1)) / 50
            yield metric, Point(10 * step, value, 1.75e9 + step)


def logged_run(workspace: Workspace) -> RunRecord:
    run = ended_run(LOGGED, 2 * RUNS)
    log = workspace.run_folder(LOGGED) / "train/user_logs/std_log_process_0.txt"
    log.parent.mkdir(parents=True)
    line = "2026-11-30 12:00:00 INFO step {:>7} of 1,000,000: loss 0.1234, 5.6 s, 78 samples a second\n"
    block = "".join(line.format(at) for at in range(LOG_BYTES // 1024 // len(line.format(0)))).encode()
    with log.open("wb") as file:
        for _ in range(1024):
            file.write(block)
    run.status, run.ended = Status.COMPLETED, run.created + 50
    run.steps[0].ranks = [RankRecord(0, 0, 0, "instance-0", Status.COMPLETED, run.created, None, None, None, str(log))]
    return run
