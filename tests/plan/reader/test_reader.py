"""Pipelines become plans: from Python, from YAML, with values that the user sets."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import Location
from allranks.plan.environment import registered
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Text
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import read_job
from allranks.plan.reader.nodes import in_order
from allranks.plan.walk import with_steps
from pipeline_files import read, write, write_dsl
from plan_findings import check

DSL = """
@dsl.pipeline(description="Two trainings.", experiment_name="digits", continue_on_step_failure=False)
def digits(data: Input(type="uri_folder"), lr: float = 0.5, count: int = 2, tag: str = "x"):
    first = train(data=data, lr=lr)
    second = train(
        data=first.outputs.model, kind="large", epochs=count
    )
    second.resources = {"instance_count": count, "shm_size": "512m"}
    second.distribution = MpiDistribution(process_count_per_instance=count)
    second.environment_variables = {"B": "2", "C": tag}
    second.set_limits(timeout=30)
    second.inputs.data.mode = "download"
    second.compute = "gpu"
    return {"final": second.outputs.model}
"""


YAML = """\
type: pipeline
description: Two trainings.
experiment_name: digits
display_name: digits
settings: {continue_on_step_failure: false, default_compute: azureml:cpu}
inputs:
  data: {type: uri_folder, path: data}
  lr: 0.5
  count: 2
  tag: x
outputs:
  final: {type: uri_folder}
jobs:
  first:
    type: command
    component: ./train.yml
    inputs: {data: "${{parent.inputs.data}}", lr: "${{parent.inputs.lr}}"}
  second:
    type: command
    component: file:./train.yml
    compute: azureml:gpu
    inputs:
      data: {path: "${{parent.jobs.first.outputs.model}}", mode: download}
      kind: large
      epochs: ${{parent.inputs.count}}
    outputs: {model: "${{parent.outputs.final}}"}
    resources: {instance_count: "${{parent.inputs.count}}", shm_size: 512m}
    distribution: {type: mpi, process_count_per_instance: "${{parent.inputs.count}}"}
    environment_variables: {B: "2", C: "${{parent.inputs.tag}}"}
    limits: {timeout: 30}
"""


def test_a_function_and_yaml_of_the_same_pipeline_give_the_same_plan(here: Path) -> None:
    python = read(write_dsl(here, DSL), {"data": "data"})
    yaml = read(write(here, "digits.yml", YAML))
    assert [step.location for step in python.graph.nodes] == [Location("pipeline.py", 7), Location("pipeline.py", 8)]
    assert [step.location for step in yaml.graph.nodes] == [Location("digits.yml", 14), Location("digits.yml", 18)]
    assert (python.name, yaml.name) == ("digits", "digits")
    assert _bare(python) == _bare(yaml)
    assert yaml.experiment == "digits"
    assert not yaml.continue_on_step_failure


def _bare(plan: Plan) -> Plan:
    return replace(plan, source="", graph=with_steps(plan.graph, lambda step, _: replace(step, location=None)))


def test_everything_that_a_step_says(here: Path) -> None:
    plan = read(write_dsl(here, DSL), {"data": "data", "lr": "1", "count": "3"})
    first, second = plan.graph.nodes
    assert second == Step(
        name="second",
        command=first.command,
        component="train",
        version="1.2.0",
        display_name="Train",
        description="Trains.",
        code=first.code,
        environment=registered("azureml:torch@latest"),
        environment_variables={"B": "2", "C": GraphInput("tag")},
        inputs=(
            Input("data", "uri_folder", NodeOutput("first", "model"), "download"),
            Input("lr", "number", Literal(0.1), minimum=0.0, maximum=1.0),
            Input("kind", "string", Literal("large"), enum=("small", "large")),
            Input("epochs", "integer", GraphInput("count"), optional=True, minimum=1),
            Input("fast", "boolean", Literal(True)),
        ),
        outputs=(Output("model", "uri_folder", "upload"), Output("score", "number")),
        distribution=Mpi(process_count_per_instance=3),
        instance_count=3,
        shm_size=512 << 20,
        timeout=30.0,
        deterministic=False,
        location=Location("pipeline.py", 8),
    )
    assert (first.distribution, first.instance_count, first.shm_size, first.timeout) == (PyTorch(2), 2, 4 << 30, None)
    assert (first.environment_variables, first.ignored_variables) == ({}, ("A", "B"))
    assert first.inputs[3] == Input("epochs", "integer", None, optional=True, minimum=1)
    assert plan.graph.inputs == (
        Input("data", "uri_folder", DataPath(str(here / "data")), "ro_mount"),
        Input("lr", "number", Literal(1.0)),
        Input("count", "integer", Literal(3)),
        Input("tag", "string", Literal("x")),
    )
    assert plan.graph.outputs == (GraphOutput("final", NodeOutput("second", "model"), "uri_folder"),)
    assert plan.source == str(here / "pipeline.py")
    assert (plan.display_name, plan.description, plan.force_rerun) == ("digits", "Two trainings.", False)


def test_jobs_that_are_written_into_the_pipeline(here: Path) -> None:
    write(here, "conda.yml", "name: x\n")
    write(here, "image/Dockerfile", "FROM scratch\n")
    write(here, "allranks.yaml", "data: {images:3: data}")
    plan = read(
        write(
            here,
            "inline.yml",
            """\
            type: pipeline
            inputs: {data: {path: data}, lr: 1}
            outputs: {all: }
            settings: {force_rerun: true}
            jobs:
              make:
                command: echo ${{inputs.lr}} > ${{outputs.table}}
                environment: {image: python, conda_file: conda.yml}
                inputs: {lr: "${{parent.inputs.lr}}", name: "lr-${{parent.inputs.lr}}"}
                outputs:
                  table: {type: uri_file, path: "azureml://datastores/x/paths/${{name}}.csv"}
                resources: {instance_type: Standard_D2, instance_count: 1}
              use:
                command: cat ${{inputs.part}} ${{inputs.table}} ${{inputs.raw}}
                environment: {build: {path: image}}
                code: src
                inputs:
                  part: ${{parent.inputs.data}}/part
                  table: {type: uri_file, path: "${{parent.jobs.make.outputs.table}}"}
                  raw: {type: uri_file, path: data/numbers.csv, mode: direct}
                  far: {path: "azureml:images:3"}
                outputs: {all: "${{parent.outputs.all}}"}
            """,
        )
    )
    make, use = plan.graph.nodes
    assert [port.value for port in make.inputs] == [GraphInput("lr"), Text(("lr-", GraphInput("lr")))]
    assert make.outputs[0] == Output("table", "uri_file", "rw_mount", "azureml://datastores/x/paths/${{name}}.csv")
    assert (make.component, make.version, make.code, make.instance_type) == ("", "", None, "Standard_D2")
    assert str(make.environment).startswith("x, image python, conda ")
    assert str(use.environment).startswith("build ")
    assert [port.value for port in use.inputs] == [
        Text((GraphInput("data"), "/part")),
        NodeOutput("make", "table"),
        DataPath(str(here / "data/numbers.csv")),
        DataPath(str(here / "data")),
    ]
    assert use.inputs[2].mode == "direct"
    assert plan.graph.outputs == (GraphOutput("all", NodeOutput("use", "all"), "uri_folder"),)
    assert plan.force_rerun
    assert plan.continue_on_step_failure


def test_a_command_job_is_a_plan_of_one_step(here: Path) -> None:
    job = """\
        $schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
        display_name: Say it
        command: echo ${{inputs.text}} ${{inputs.lr}}
        environment: azureml:torch:3
        code: src
        inputs: {text: {type: uri_file, path: data/numbers.csv}, lr: 1}
        outputs: {said: }
        resources: {instance_count: 3}
        distribution: {type: pytorch}
        limits: {timeout: 20}
        environment_variables: {A: "1"}
        """
    plan = read(write(here, "say it.yml", job), {"lr": "0.5"})
    (step,) = plan.graph.nodes
    assert (plan.name, step.name, plan.display_name) == ("say_it", "say_it", "Say it")
    assert plan.graph.inputs == (
        Input("text", "uri_file", DataPath(str(here / "data/numbers.csv")), "ro_mount"),
        Input("lr", "number", Literal(0.5)),
    )
    assert [port.value for port in step.inputs] == [GraphInput("text"), GraphInput("lr")]
    assert (step.distribution, step.instance_count, step.timeout) == (PyTorch(1), 3, 20.0)
    # Azure ML reuses results of steps, never of a job by itself.
    assert not step.deterministic
    assert not check(plan)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("{type: pytorch}", PyTorch(1)),
        ("{type: mpi, process_count_per_instance: 4}", Mpi(4)),
        ("{type: tensorflow, worker_count: 2, parameter_server_count: 1}", TensorFlow(2, 1)),
        ("{type: ray, port: 7000, include_dashboard: true, worker_node_additional_args: -v}", None),
    ],
)
def test_distributions(here: Path, yaml: str, expected: object) -> None:
    text = f"command: ls\nenvironment: azureml:x:1\ndistribution: {yaml}\n"
    found = read(write(here, "job.yml", text)).graph.nodes[0].distribution
    assert found == (expected or Ray(port=7000, include_dashboard=True, worker_node_additional_args="-v"))


def test_what_the_platform_would_use_by_itself(here: Path) -> None:
    (step,) = read(write(here, "job.yml", "command: ls\nenvironment: azureml:x:1\n")).graph.nodes
    assert (step.instance_count, step.shm_size, step.timeout, step.code) == (1, 2 << 30, None, None)
    assert step.distribution == Single()


def test_paths_in_yaml_are_relative_to_the_file_and_set_ones_to_the_current_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(here, "digits.yml", YAML)
    elsewhere = here / "elsewhere"
    (elsewhere / "data").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    assert read(file).graph.inputs[0].value == DataPath(str(here / "data"))
    plan = read(file, {"data": "data"})
    assert plan.graph.inputs[0] == Input("data", "uri_folder", DataPath(str(elsewhere / "data")), "ro_mount")
    assert plan.graph.nodes[0].location == Location(str(file), 14)


def test_a_number_in_yaml_may_be_set_to_any_number(here: Path) -> None:
    file = write(here, "digits.yml", YAML.replace("lr: 0.5", "lr: 1"))
    assert read(file, {"lr": "0.25"}).graph.inputs[1] == Input("lr", "number", Literal(0.25))


def test_code_is_merged_with_what_it_includes_and_kept_once(here: Path) -> None:
    write(here, "shared/tool.py", "x = 1\n")
    text = (here / "train.yml").read_text()
    write(here, "train.yml", text + "additional_includes: [./shared]\n")
    first, second = read(write_dsl(here, DSL), {"data": "data"}).graph.nodes
    assert first.code is not None
    assert first.code == second.code
    assert os.listdir(here / "snapshots") == [first.code.digest]
    assert sorted(os.listdir(first.code.folder)) == ["main.py", "shared"]
    write(here, "shared/tool.py", "x = 2\n")
    changed = read(write_dsl(here, DSL), {"data": "data"}).graph.nodes[0]
    assert changed.code is not None
    assert changed.code.digest != first.code.digest
    assert Path(first.code.folder, "shared/tool.py").read_text() == "x = 1\n"


def test_a_job_that_was_built_by_hand(here: Path) -> None:
    from azure.ai.ml import Input as SdkInput
    from azure.ai.ml import command

    job = command(
        command="echo ${{inputs.x}}",
        environment="azureml:x:1",
        inputs={"x": SdkInput(type="uri_folder", path="data"), "n": 3},
        instance_count=2,
        distribution={"type": "PyTorch", "process_count_per_instance": 4},
    )
    plan = read_job(job, here / "snapshots")
    assert plan.graph.nodes[0].distribution == PyTorch(4)
    assert [port.value for port in plan.graph.inputs] == [DataPath(str(here / "data")), Literal(3)]


def test_steps_come_after_what_they_need() -> None:
    def step(name: str, *needs: str) -> Step:
        return Step(name, "x", after=needs)

    def ordered(*steps: Step) -> list[str]:
        return [one.name for one in in_order(steps, Graph(steps).needs)]

    names = ordered(step("d", "b", "c"), step("b", "a"), step("a"), step("c"), step("e", "nowhere"))
    assert names == ["a", "b", "c", "d", "e"]
    cyclic = ordered(step("x", "y"), step("y", "x"), step("after", "y"), step("free"))
    assert cyclic == ["free", "x", "y", "after"]


def test_the_reader_is_silent_and_leaves_the_process_as_it_was(here: Path) -> None:
    write(here, "digits.yml", YAML)
    script = """
import os, sys, json, warnings, yaml
from pathlib import Path
before = (dict(os.environ), list(sys.path), yaml.safe_load, warnings.filters[:])
from allranks.plan.reader import read_plan
assert "azure.ai.ml" not in sys.modules, "imported too early"
plan = read_plan(sys.argv[1], {}, Path(sys.argv[2]))
after = (dict(os.environ), list(sys.path), yaml.safe_load, warnings.filters[:])
print(json.dumps([len(plan.graph.nodes), before == after]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "digits.yml", "snapshots"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (json.dumps([2, True]) + "\n", "")


def test_what_the_pipelines_file_prints_is_no_output(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    read(write_dsl(here, "print('hello')\n" + DSL), {"data": "data"})
    out, err = capfd.readouterr()
    assert (out, err) == ("", "hello\n")


def test_an_environment_that_is_built_keeps_the_name_of_its_file(here: Path) -> None:
    write(here, "image/Dockerfile", "FROM scratch\n")
    write(here, "image/environment.yaml", "name: own\nversion: 1\nbuild: {path: .}\n")
    by_file = "name: job\ncommand: ls\nenvironment: file:image/environment.yaml\n"
    within = "name: job\ncommand: ls\nenvironment: {build: {path: image}}\n"
    for text in (by_file, within):
        (step,) = read(write(here, "job.yml", text)).graph.nodes
        assert str(step.environment).startswith("own, build ")
    (here / "image/environment.yaml").unlink()
    (step,) = read(write(here, "job.yml", within)).graph.nodes
    assert str(step.environment).startswith("build ")
