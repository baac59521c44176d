"""Nodes that do not run here, folders that stand in for them, and transfers, which are read as steps."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.templating import render
from allranks.errors import InputError, Level
from allranks.plan.graph import StandIn, Step
from allranks.plan.ports import GraphInput, Output
from allranks.plan.reader import lookup_of, opened, read_plan
from allranks.plan.reader.settings import with_stand_ins
from allranks.sdk.session import session
from pipeline_files import write
from plan_findings import check

pytestmark = pytest.mark.slow  # some start an engine

PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:cpu}
inputs: {table: {type: uri_folder, path: data}}
jobs:
  fit:
    type: command
    component: azureml:fit:3
    inputs: {table: "${{parent.inputs.table}}"}
  clean:
    type: spark
    code: ./src
    entry: {file: main.py}
    args: --table ${{inputs.table}}
    conf:
      {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 1, spark.executor.memory: 2g,
       spark.executor.instances: 1}
    resources: {instance_type: Standard_E8S_V3, runtime_version: "3.4"}
    inputs: {table: {type: uri_folder, mode: direct, path: "${{parent.inputs.table}}"}}
    outputs: {cleaned: {type: uri_folder, mode: direct}}
  train:
    type: command
    component: ./train.yml
    inputs: {data: "${{parent.jobs.clean.outputs.cleaned}}"}
  use:
    type: command
    component: ./use.yml
    inputs: {model: "${{parent.jobs.fit.outputs.model}}", score: "${{parent.jobs.fit.outputs.score}}"}
"""
USE = """\
type: command
name: use
version: "1"
inputs: {model: {type: uri_folder}, score: {type: number}}
environment: azureml:base:1
command: ls ${{inputs.model}} ${{inputs.score}}
"""


@pytest.fixture
def project(here: Path) -> Path:
    write(here, "pipeline.yml", PIPELINE)
    write(here, "use.yml", USE)
    write(here, "have/fit/model/weights", "1\n")
    write(here, "have/fit/score.txt", "0.5\n")
    write(here, "have/clean/part.csv", "1\n")
    return here


def read(folder: Path, **stand_ins: str):
    values = with_stand_ins({}, stand_ins)
    return read_plan("pipeline.yml", values, folder / "snapshots")


def test_from_the_command_line_and_from_the_file(project: Path) -> None:
    write(project, "allranks.yaml", "stand_ins: {clean: have/clean, other: have}\n")
    plan = read(project, fit="have/fit")
    assert check(plan) == []
    fit, clean = (node for node in plan.graph.nodes if isinstance(node, StandIn))
    have = project / "have"
    assert fit.outputs == (
        Output("model", "uri_folder", "rw_mount", str(have / "fit/model")),
        Output("score", "number", "rw_mount", str(have / "fit/score.txt")),
    )
    assert (clean.what, clean.folder) == ("a Spark node", str(have / "clean"))
    assert clean.outputs == (Output("cleaned", "uri_folder", "direct", str(have / "clean")),)


def test_any_step_may_be_left_out(project: Path) -> None:
    plan = read(project, fit="have/fit", clean="have/clean", train="have/fit", use="have")
    assert [type(node).__name__ for node in plan.graph.nodes] == ["StandIn"] * 4


@pytest.mark.parametrize(
    ("stand_ins", "where", "found"),
    [
        ({"fitt": "have/fit"}, "--stand-in fitt", "there is no step fitt"),
        ({"clean": "have/nothing"}, "--stand-in clean", "have/nothing does not exist"),
        ({"fit": "have/clean"}, "--stand-in fit", "have/clean has no model, score"),
    ],
)
def test_a_wrong_name_or_folder(project: Path, stand_ins: dict[str, str], where: str, found: str) -> None:
    with pytest.raises(InputError) as raised:
        read(project, **{"fit": "have/fit", **stand_ins})
    assert [(problem.where, problem.found) for problem in raised.value.problems] == [(where, found)]


def test_a_plan_is_drawn_without_what_this_machine_lacks(project: Path) -> None:
    with session(), opened("pipeline.yml", {}, replace(lookup_of("pipeline.yml", {}, None), draws=True)) as job:
        plan = job.plan()
    fit = plan.graph.by_name["fit"]
    assert isinstance(fit, StandIn)
    assert (fit.component, fit.inputs[0].value) == ("fit:3", GraphInput("table"))
    assert [port.name for port in fit.outputs] == ["model", "score"]
    assert [problem.found for problem in plan.findings] == ["this machine does not have azureml:fit:3"]


TRANSFERS = """\
type: pipeline
settings: {default_compute: azureml:cpu}
inputs: {one: {type: uri_folder, path: data}, two: {type: uri_folder, path: src}}
jobs:
  merged:
    type: data_transfer
    task: copy_data
    data_copy_mode: MODE
    inputs: {one: "${{parent.inputs.one}}", two: "${{parent.inputs.two}}"}
    outputs: {sink: {type: uri_folder}}
  file:
    type: data_transfer
    task: copy_data
    inputs: {file: {type: uri_file, path: data/numbers.csv}}
    outputs: {sink: {type: uri_file}}
"""


def transfer(folder: Path, name: str, mode: str = "merge_with_overwrite") -> Step:
    write(folder, "transfers.yml", TRANSFERS.replace("MODE", mode))
    plan = read_plan("transfers.yml", {}, folder / "snapshots")
    assert [row for row in check(plan) if row.rule != "data"] == []
    step = plan.graph.by_name[name]
    assert isinstance(step, Step)
    return step


def carry_out(step: Step, folder: Path) -> tuple[int, list[str]]:
    sink = folder / "out"
    (sink.parent if step.outputs[0].type == "uri_file" else sink).mkdir(exist_ok=True)
    paths = {"one": folder / "data", "two": folder / "src", "file": folder / "data/numbers.csv"}
    inputs = {name: str(path) for name, path in paths.items()}
    code = subprocess.run(["bash", "-c", render(step.command, inputs, {"sink": str(sink)})], check=False).returncode
    return code, sorted(str(path.relative_to(folder)) for path in (sink, *sink.rglob("*")) if path.is_file())


def test_a_transfer_copies_files(here: Path) -> None:
    assert carry_out(transfer(here, "file"), here) == (0, ["out"])
    (here / "out").unlink()
    write(here, "src/numbers.csv", "3\n")
    assert carry_out(transfer(here, "merged", "fail_if_conflict"), here)[0] == 1
    assert carry_out(transfer(here, "merged"), here) == (0, ["out/main.py", "out/numbers.csv"])
    assert (here / "out/numbers.csv").read_text() == "3\n"


TRANSFER_NOT_RUN = """\
type: pipeline
settings: {default_compute: azureml:cpu}
jobs:
  moved:
    type: data_transfer
    task: import_data
    source: {type: database, connection: azureml:db, query: select 1}
    outputs: {sink: {type: mltable}}
"""


def test_an_import_does_not_run(here: Path) -> None:
    write(here, "transfer.yml", TRANSFER_NOT_RUN)
    (problem,) = check(read_plan("transfer.yml", {}, here / "snapshots"))
    assert problem.found == "a data transfer that imports or exports does not run on this machine"
    assert (problem.code, problem.level) == ("not-run-here", Level.MACHINE)
    plan = read_plan("transfer.yml", with_stand_ins({}, {"moved": "data"}), here / "snapshots")
    assert check(plan) == []
    assert isinstance(plan.graph.by_name["moved"], StandIn)


def test_a_spark_node_does_not_run_here(project: Path) -> None:
    (problem,) = check(read(project, fit="have/fit"))
    assert (problem.found, problem.level) == ("a Spark node does not run on this machine", Level.MACHINE)
    assert problem.fix.endswith("--stand-in clean=FOLDER")
    assert check(read(project, fit="have/fit", clean="have/clean")) == []


DYNAMIC = """
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import Environment
from mldesigner import Input
from mldesigner.dsl import dynamic

@dynamic(environment=Environment(image="python:3.11"))
def many(count: Input(type="integer")):
    pass

@pipeline
def main():
    a = many(count=2)
"""


def test_a_dynamic_pipeline_does_not_run_here(here: Path) -> None:
    (node,) = read_plan(f"{write(here, 'dyn.py', DYNAMIC)}:main", {}, here / "snapshots").graph.nodes
    assert isinstance(node, StandIn)
    assert node.what.startswith("a @dynamic pipeline of mldesigner")
