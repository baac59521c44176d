"""Values and paths that get lost on the way: an empty text, 0 of a node as the job, an output's path in a datastore."""

from pathlib import Path

import pytest

from allranks.history import registered
from allranks.plan.graph import Plan
from allranks.plan.ports import Literal
from allranks.plan.reader import opened, read_plan
from allranks.plan.reader.step_ports import LEFT_OUT, REFUSED
from allranks.workspace import Workspace
from pipeline_files import write
from plan_findings import check, warnings

STEP = """\
type: command
command: echo ${{inputs.text}} ${{inputs.count}} ${{inputs.other}}
environment: azureml:base:1
inputs: {text: VALUE, count: 0, other: "${{parent.inputs.other}}"}
"""
INNER = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json
type: pipeline
name: inner
version: "1"
inputs: {count: {type: integer, default: 3}, flag: {type: boolean}, text: {type: string}}
jobs:
  show:
    type: command
    command: echo ${{inputs.count}} ${{inputs.flag}} ${{inputs.text}}
    environment: azureml:base:1
    inputs: {count: "${{parent.inputs.count}}", flag: "${{parent.inputs.flag}}", text: "${{parent.inputs.text}}"}
"""


def lost(plan: Plan) -> list[tuple[str, str]]:
    rows = [row for row in warnings(plan) if row.rule == "lost-value"]
    return [(row.where.partition(" (")[0], row.found.partition(": ")[2]) for row in rows]


def test_an_empty_text_by_level(here: Path) -> None:
    step = STEP.replace("VALUE", '""').replace("\n", "\n    ")
    write(here, "job.yml", STEP.replace("VALUE", '""').replace("${{parent.inputs.other}}", "x"))
    write(here, "pipeline.yml", f'type: pipeline\ninputs: {{other: "", lr: 0}}\njobs:\n  show:\n    {step}')
    assert lost(read_plan("job.yml", {}, here / "snapshots")) == [("pipeline job, key inputs.text", REFUSED)]
    assert lost(read_plan("pipeline.yml", {}, here / "snapshots")) == [
        ("pipeline pipeline, key inputs.other", LEFT_OUT),
        ("step show, key inputs.text", REFUSED),
    ]
    assert lost(read_plan("pipeline.yml", {"other": "x"}, here / "snapshots"))[1:] == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("count=5, flag=True, text='a'", []),
        ("count=0, flag=False, text='0'", ["count", "flag"]),
        ("flag=True, text=''", ["text"]),
    ],
)
def test_a_pipeline_components_node_as_the_job(here: Path, values: str, expected: list[str]) -> None:
    write(here, "inner.yml", INNER)
    write(here, "job.py", f"from azure.ai.ml import load_component\njob = load_component('inner.yml')({values})\n")
    plan = read_plan("job.py", {}, here / "snapshots")
    assert check(plan) == []
    assert lost(plan) == [(f"pipeline inner, key inputs.{name}", LEFT_OUT) for name in expected]
    assert [node.name for node in plan.graph.nodes] == ["show"]
    if expected == ["count", "flag"]:
        assert [port.value for port in plan.graph.inputs] == [Literal(0), Literal(False), Literal("0")]


WRITE = """\
type: pipeline
settings: {default_compute: azureml:cpu}
outputs: {all: {type: uri_folder, path: "azureml://datastores/blobs/paths/all"}}
jobs:
  one:
    type: command
    command: echo 1 > ${{outputs.labels}}/a; echo 1 > ${{outputs.all}}/a
    environment: azureml:base:1
    outputs:
      labels: {type: uri_folder, path: "azureml://datastores/blobs/paths/${{name}}/labels/"}
      all: "${{parent.outputs.all}}"
"""


def test_an_output_in_a_datastore(here: Path) -> None:
    write(here, "pipeline.yml", WRITE)
    place = Workspace(here / "workspace")

    def outputs() -> tuple[list[str | None], list[tuple[str, str]]]:
        plan = read_plan("pipeline.yml", {}, here / "snapshots", registered.of(place))
        paths = [plan.graph.nodes[0].outputs[0].path, plan.graph.outputs[0].path]
        return paths, [(row.rule, row.fix) for row in warnings(plan)]

    uris = ["azureml://datastores/blobs/paths/${{name}}/labels/", "azureml://datastores/blobs/paths/all"]
    warning = ("unmapped-output", "add to allranks.yaml:\ndatastores:\n  blobs: path/to/folder")
    assert outputs() == (uris, [warning])
    write(here, "allranks.yaml", "datastores: {blobs: store}\n")
    assert outputs() == ([f"{here}/store/${{{{name}}}}/labels", f"{here}/store/all"], [])
    with opened("pipeline.yml", {}) as job:
        assert job.plan().graph.outputs[0].path == uris[1]
