"""What is submitted comes back: the plan of a job is the plan of the REST body that the real client sends for it."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from round_trip import azure, check_round_trip, there_and_back

from allranks.plan.environment import registered
from allranks_command import write

__all__ = ["azure"]

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.xdist_group("round trip")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["score_images", "tune_image_classifier"])
def test_the_plan_of_a_pipeline_is_that_of_its_rest_body(azure, name, tmp_path) -> None:
    """A parallel step and a sweep."""
    check_round_trip(azure, ROOT / "pipelines" / f"{name}.py", tmp_path)


COMPONENT = """\
name: train
version: "1.2"
display_name: Train
description: Trains.
type: command
is_deterministic: false
inputs:
  data: {type: uri_folder, optional: true}
  file: {type: uri_file, mode: download, optional: true}
  table: {type: mltable, mode: eval_mount, optional: true}
  model: {type: mlflow_model, mode: direct, optional: true}
  lr: {type: number, default: 0.1, min: 0, max: 1}
  rate: {type: number, optional: true}
  kind: {type: string, enum: [small, large], default: small}
  epochs: {type: integer, optional: true, min: 1}
  fast: {type: boolean, default: true}
outputs:
  model: {type: mlflow_model, mode: upload}
  folder: {type: uri_folder}
  file: {type: uri_file}
  score: {type: number}
code: ./src
environment: azureml:cpu:1
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 2, shm_size: 4g}
command: >-
  echo $[[${{inputs.data}}]] $[[${{inputs.file}}]] $[[${{inputs.table}}]] $[[${{inputs.model}}]] ${{inputs.lr}}
  $[[${{inputs.rate}}]] ${{inputs.kind}} $[[${{inputs.epochs}}]] ${{inputs.fast}} ${{outputs.model}}
  ${{outputs.folder}} ${{outputs.file}} ${{outputs.score}}
"""

HEAD = """\
from azure.ai.ml import Input, Output, command, dsl, load_component
from azure.ai.ml import MpiDistribution, PyTorchDistribution, RayDistribution, TensorFlowDistribution
from azure.ai.ml.entities import CommandJobLimits, JobResourceConfiguration

train = load_component(source="./train.yml")

"""

CASES = {
    "literals": """
        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline():
            train(lr=0.5, rate=1, kind="large", epochs=3, fast=False)
            train(lr=1, rate=1e-05, fast=True)
    """,
    "pipeline inputs": """
        @dsl.pipeline(display_name="P", description="What it is.", default_compute="cpu-cluster")
        def pipeline(lr: float = 0.25, kind: str = "large", epochs: int = 2, fast: bool = False, name="x", many=3):
            train(lr=lr, kind=kind, epochs=epochs, fast=fast)
            train(kind="a-${{parent.inputs.name}}-${{parent.inputs.many}}")
    """,
    "optional inputs that are not given": """
        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline(
            data: Input(type="uri_folder", optional=True) = None,
            epochs: Input(type="integer", optional=True) = None,
        ):
            train(data=data, epochs=epochs)
    """,
    "every type and mode of data": """
        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline(data: Input(type="uri_folder"), model: Input(type="mlflow_model")):
            one = train(data=data, file=Input(type="uri_file", path="./data/numbers.csv", mode="ro_mount"), model=model)
            two = train(data=one.outputs.folder, file=one.outputs.file, model=one.outputs.model)
            two.inputs.data.mode = "download"
            train(table=Input(type="mltable", path="azureml://datastores/elsewhere/paths/table"))
    """,
    "outputs": """
        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline():
            one = train()
            one.outputs.folder.mode = "upload"
            one.outputs.file = Output(type="uri_file", mode="rw_mount", path="azureml://datastores/x/paths/a/b")
            two = train(lr=one.outputs.score)
            return {"folder": two.outputs.folder, "model": one.outputs.model}
    """,
    "settings of a step": """
        @dsl.pipeline(default_compute="cpu-cluster", continue_on_step_failure=False, force_rerun=True)
        def pipeline(count: int = 3):
            one = train()
            one.resources = JobResourceConfiguration(instance_count=count, shm_size="512m")
            one.limits = CommandJobLimits(timeout=90)
            one.environment_variables = {"B": "2", "C": "3"}
            one.display_name = "One"
            two = train()
            two.resources = JobResourceConfiguration(instance_type="Standard_NC24ads_A100_v4", instance_count=1)
    """,
    "distributions": """
        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline(processes: int = 4):
            train()
            train().distribution = PyTorchDistribution(process_count_per_instance=processes)
            train().distribution = MpiDistribution(process_count_per_instance=3)
            train().distribution = TensorFlowDistribution(worker_count=2, parameter_server_count=1)
            train().distribution = RayDistribution(port=6380, include_dashboard=True, dashboard_port=8266)
            train().distribution = RayDistribution()
    """,
    "a command in the pipeline": """
        say = command(
            name="say",
            command="echo ${{inputs.text}} ${{inputs.many}} ${{outputs.out}}",
            inputs={"text": Input(type="string"), "many": 3},
            outputs={"out": Output(type="uri_folder")},
            environment="azureml:cpu:1",
            environment_variables={"A": "1"},
            code="./src",
        )

        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline(text: str = "hello"):
            return {"out": say(text=text).outputs.out}
    """,
    "no code, and environments by what they are made of": """
        from azure.ai.ml.entities import BuildContext, Environment

        plain = command(name="plain", command="echo 1", environment=Environment(image="ubuntu:22.04"))
        built = command(name="built", command="echo 1", environment=Environment(build=BuildContext(path="./context")))
        conda = command(
            name="conda", command="echo 1", environment=Environment(image="ubuntu:22.04", conda_file="./conda.yml")
        )

        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline():
            plain(), built(), conda()
    """,
}

VALUES = {"every type and mode of data": {"data": "data", "model": "data"}}
"""What is set for the inputs of a case that have no default."""

YAML = {
    "pipeline.yml": """
        type: pipeline
        display_name: Two
        compute: azureml:cpu-cluster
        inputs:
          lr: 0.5
          data: {type: uri_folder, path: ./data}
        outputs: {folder: {type: uri_folder, mode: upload}}
        settings: {continue_on_step_failure: false}
        jobs:
          one:
            type: command
            component: ./train.yml
            inputs: {lr: "${{parent.inputs.lr}}", data: "${{parent.inputs.data}}"}
            resources: {instance_count: 3}
            limits: {timeout: 60}
          two:
            type: command
            command: cat ${{inputs.text}} ${{inputs.n}} > ${{outputs.out}}/text
            environment: {image: "ubuntu:22.04"}
            distribution: {type: mpi, process_count_per_instance: 2}
            inputs: {text: "${{parent.jobs.one.outputs.file}}", n: 4}
            outputs: {out: "${{parent.outputs.folder}}"}
    """,
    "job.yml": """
        type: command
        name: job
        display_name: Alone
        command: echo ${{inputs.count}} ${{inputs.rate}} ${{inputs.word}} ${{inputs.flag}} ${{inputs.data}}
        code: ./src
        environment: azureml:cpu:1
        environment_variables: {A: "1"}
        compute: azureml:cpu-cluster
        inputs:
          count: 3
          rate: 1.0e-05
          word: hello
          flag: true
          data: {type: uri_folder, path: ./data, mode: download}
        outputs: {out: {type: uri_file, mode: rw_mount}}
        distribution: {type: pytorch, process_count_per_instance: 2}
        resources: {instance_count: 2, shm_size: 1g}
        limits: {timeout: 60}
    """,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a component, its code and data."""
    folder = tmp_path / "project"
    write(folder, "train.yml", COMPONENT)
    write(folder, "src/main.py", "print('hello')\n")
    write(folder, "src/tools/tool.py", "")
    write(folder, "data/numbers.csv", "1,2\n")
    write(folder, "context/Dockerfile", "FROM ubuntu:22.04\n")
    write(folder, "context/environment.yaml", "name: built\nbuild: {path: .}\n")
    write(folder, "conda.yml", "name: conda\ndependencies: [python=3.12]\n")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_the_plan_of_a_dsl_pipeline_is_that_of_its_rest_body(azure, project, case, monkeypatch) -> None:
    monkeypatch.chdir(project)
    path = write(project, "pipeline.py", HEAD + textwrap.dedent(CASES[case]))
    check_round_trip(azure, path, project, VALUES.get(case, {}))


@pytest.mark.parametrize("name", YAML)
def test_the_plan_of_a_yaml_job_is_that_of_its_rest_body(azure, project, name, monkeypatch) -> None:
    monkeypatch.chdir(project)
    # Another than the DSL's: of components that differ in no more than their names, the service keeps the first.
    write(project, "train.yml", COMPONENT.replace("Trains.", "Trains by YAML."))
    check_round_trip(azure, write(project, name, YAML[name]), project, nameless=True)


def test_some_settings_never_reach_the_service(azure, project, monkeypatch) -> None:
    """The SDK sends no environment variables of a component, and of a step no description and no environment. The
    variables and the environment are not used here either."""
    monkeypatch.chdir(project)
    write(project, "train.yml", COMPONENT + 'environment_variables: {A: "1"}\n')
    case = """
        @dsl.pipeline(default_compute="cpu-cluster")
        def pipeline():
            one = train()
            one.description = "The first."
            one.environment = "azureml:other:2"
            one.environment_variables = {"B": "2"}
    """
    path = write(project, "pipeline.py", HEAD + textwrap.dedent(case))
    (plan,), (back,) = (side.graph.nodes for side in there_and_back(azure, path, project, {}))
    assert (plan.environment_variables, plan.ignored_variables) == ({"B": "2"}, ("A",))
    assert plan.environment == registered("azureml:cpu:1")
    assert back == replace(plan, description="Trains.")


ORDERED = """\
import allranks
from azure.ai.ml import command
from azure.ai.ml.dsl import pipeline

say = command(command="echo", environment="azureml:cpu:1")


@pipeline
def inner():
    a = say()


@pipeline
def ordered():
    first = say()
    second = say()
    allranks.after(second, first)
    group = inner()
    allranks.after(group, first, second)
"""


def test_steps_that_are_ordered_without_data(azure, tmp_path) -> None:
    file = tmp_path / "ordered.py"
    file.write_text(ORDERED)
    check_round_trip(azure, file, tmp_path)
