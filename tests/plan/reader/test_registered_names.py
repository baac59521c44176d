"""Pipelines that name registered components, data, models and environments, in the style of the public examples."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.history import registered
from allranks.history.registered import RegisteredAsset
from allranks.history.store import Store
from allranks.local import interpreters
from allranks.plan.environment import Environment
from allranks.plan.ports import GraphInput, GraphOutput, Literal, NodeOutput
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import opened, read_plan
from allranks.workspace import Workspace
from pipeline_files import read, write

DOWNLOADER = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: dataset_downloader
version: 0.0.7
inputs:
  dataset_name: {type: string}
  split: {type: string, enum: [train, test], default: test}
  limit: {type: integer, optional: true}
  script: {type: uri_file, optional: true}
outputs:
  output_dataset: {type: uri_folder}
code: src
environment: azureml://registries/azureml/environments/model-evaluation/labels/latest
command: >-
  python main.py --name ${{inputs.dataset_name}} --split ${{inputs.split}} --out ${{outputs.output_dataset}}
"""

TRAINER = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: trainer
version: 0.0.3
inputs:
  dataset: {type: uri_folder}
  base: {type: mlflow_model}
  lr: {type: number, default: 0.1}
outputs:
  model: {type: mlflow_model}
code: src
environment: azureml:acpt-pytorch@latest
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 2}
command: python main.py --data ${{inputs.dataset}} --lr ${{inputs.lr}} --out ${{outputs.model}}
"""

PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
settings: {default_compute: azureml:cpu-cluster}
inputs:
  script: {type: uri_file, path: adl://example.azuredatalakestore.net/loaders/squad.py}
  base: {type: mlflow_model, path: "azureml://registries/azureml/models/bert/versions/4"}
  lr: 0.5
outputs:
  best: {type: mlflow_model}
jobs:
  fetch:
    type: command
    component: azureml://registries/azureml/components/dataset_downloader/labels/latest
    inputs: {dataset_name: squad, limit: 10, script: "${{parent.inputs.script}}"}
  train:
    type: command
    component: azureml:trainer:0.0.3
    inputs:
      dataset: ${{parent.jobs.fetch.outputs.output_dataset}}
      base: {type: mlflow_model, path: "${{parent.inputs.base}}", mode: download}
      lr: ${{parent.inputs.lr}}
    outputs: {model: "${{parent.outputs.best}}"}
    resources: {instance_count: 4}
"""

REGISTRY = "azureml://registries/azureml"

NAMES = """\
components:
  registries/azureml/components/*: registry
  trainer: own/trainer.yaml
data:
  adl://example.azuredatalakestore.net/*: data
models:
  registries/azureml/models/*: models
environments:
  acpt-pytorch: .venvs/torch
  registries/azureml/environments/model-evaluation: own/environment.yaml
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "registry/benchmark/dataset_downloader/spec.yaml", DOWNLOADER)
    write(tmp_path, "registry/benchmark/dataset_downloader/src/main.py", "")
    write(tmp_path, "own/trainer.yaml", TRAINER)
    write(tmp_path, "own/src/main.py", "")
    write(tmp_path, "own/environment.yaml", "name: evaluation\nimage: python:3.12\n")
    write(tmp_path, "data/loaders/squad.py", "")
    write(tmp_path, "models/bert/MLmodel", "")
    (tmp_path / ".venvs/torch/bin").mkdir(parents=True)
    os.symlink(sys.executable, tmp_path / ".venvs/torch/bin/python")
    write(tmp_path, "pipeline.yml", PIPELINE)
    write(tmp_path, "allranks.yaml", NAMES)
    return tmp_path


def problems(values: Mapping[str, str] | None = None, target: str = "pipeline.yml") -> list[str]:
    with pytest.raises(InputError) as caught:
        read_plan(target, values or {}, Path("snapshots").absolute())
    return [f"{problem.where}: {problem.found}" for problem in caught.value.problems]


def test_a_step_of_a_registered_component_is_like_any_other(project: Path) -> None:
    plan = read("pipeline.yml")
    fetch, train = plan.graph.nodes
    assert {port.name: port.value for port in plan.graph.inputs} == {
        "script": DataPath(str(project / "data/loaders/squad.py")),
        "base": DataPath(str(project / "models/bert")),
        "lr": Literal(0.5),
    }
    assert (fetch.component, fetch.version, fetch.spec) == (
        "dataset_downloader",
        "0.0.7",
        str(project / "registry/benchmark/dataset_downloader/spec.yaml"),
    )
    assert {port.name: port.value for port in fetch.inputs} == {
        "dataset_name": Literal("squad"),
        "split": Literal("test"),
        "limit": Literal(10),
        "script": GraphInput("script"),
    }
    assert [port.name for port in fetch.outputs] == ["output_dataset"]
    assert fetch.code is not None
    assert [(port.name, port.type, port.value, port.mode) for port in train.inputs] == [
        ("dataset", "uri_folder", NodeOutput("fetch", "output_dataset"), "ro_mount"),
        ("base", "mlflow_model", GraphInput("base"), "download"),
        ("lr", "number", GraphInput("lr"), ""),
    ]
    # What the pipeline says of the step goes before what its component says.
    assert (train.instance_count, train.distribution) == (4, PyTorch(2))
    assert plan.graph.outputs == (GraphOutput("best", NodeOutput("train", "model"), "mlflow_model"),)


def test_an_environment_is_a_virtual_environment_or_that_of_a_file(project: Path) -> None:
    plan = read("pipeline.yml")
    fetch, train = plan.graph.nodes
    assert fetch.environment == Environment("evaluation", image="python:3.12")
    assert interpreters.find(fetch.environment, plan.source) == Path(sys.executable)
    assert str(train.environment) == "azureml:acpt-pytorch@latest"
    assert interpreters.find(train.environment, plan.source) == project / ".venvs/torch/bin/python"


def test_a_job_by_itself_has_them_too(project: Path) -> None:
    write(
        project,
        "job.yml",
        """\
        command: cat ${{inputs.table}}
        environment: azureml:acpt-pytorch@latest
        inputs: {table: {type: uri_file, path: "azureml:titanic:1"}}
        """,
    )
    write(project, "allranks.yaml", NAMES.replace("data:\n", "data:\n  titanic: own/trainer.yaml\n"))
    plan = read("job.yml")
    assert plan.graph.inputs[0].value == DataPath(str(project / "own/trainer.yaml"))
    assert interpreters.find(plan.graph.nodes[0].environment, plan.source) == project / ".venvs/torch/bin/python"


def test_a_value_that_the_user_sets_is_looked_up(project: Path) -> None:
    write(project, "allranks.yaml", NAMES.replace("data:\n", "data:\n  squad_loader: data/loaders/squad.py\n"))
    plan = read("pipeline.yml", {"script": "azureml:squad_loader@latest"})
    assert plan.graph.inputs[0].value == DataPath(str(project / "data/loaders/squad.py"))


def test_what_was_registered_here_needs_no_file(project: Path) -> None:
    write(project, "allranks.yaml", NAMES.replace("  trainer: own/trainer.yaml\n", ""))
    workspace = Workspace(project / ".allranks")
    workspace.make()
    with Store(workspace.database) as store:
        spec = project / "own/trainer.yaml"
        registered.add(store.connection, RegisteredAsset("component", "trainer", "0.0.3", spec, 0))
    plan = read_plan("pipeline.yml", {}, project / "snapshots", registered.of(workspace))
    assert plan.graph.by_name["train"].spec == str(spec)


def test_what_is_submitted_keeps_its_ids() -> None:
    with opened("pipeline.yml", {}) as job:
        assert job.unread() == ("fetch", "train")
        assert str(job.job.inputs["base"].path).startswith("azureml://registries/")


def test_everything_that_is_missing_is_told_at_once(project: Path) -> None:
    (project / "allranks.yaml").unlink()
    lacks = "this machine does not have"
    assert problems() == [
        f"step fetch, key component (pipeline.yml:13): {lacks} {REGISTRY}/components/dataset_downloader/labels/latest",
        f"step train, key component (pipeline.yml:17): {lacks} azureml:trainer:0.0.3",
        f"key inputs.script (pipeline.yml:5): {lacks} adl://example.azuredatalakestore.net/loaders/squad.py",
        f"key inputs.base (pipeline.yml:6): {lacks} {REGISTRY}/models/bert/versions/4",
    ]


WRONG = {
    "a data asset as a component": (
        "azureml:trainer:0.0.3",
        "azureml://registries/r/data/trainer/versions/3",
        "step train, key component (pipeline.yml:17): azureml://registries/r/data/trainer/versions/3 names data",
    ),
    "no id": (
        "azureml:trainer:0.0.3",
        "azureml://registries/r/components/trainer/version/3",
        (
            "step train, key component (pipeline.yml:17): azureml://registries/r/components/trainer/version/3 "
            "is not a valid id: "
        ),
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_in_the_pipeline_is_one_message(project: Path, old: str, new: str, message: str) -> None:
    assert PIPELINE.count(old) == 1
    write(project, "pipeline.yml", PIPELINE.replace(old, new))
    (found,) = problems()
    assert found.startswith(message)


WRONG_NAMES = {
    "a section": ("models:", "modles:", "key modles (allranks.yaml:6): there is no such section"),
    "a path": (
        "own/trainer.yaml",
        "own/train.yaml",
        "key components.trainer (allranks.yaml:3): own/train.yaml does not exist",
    ),
    "a pipeline where a command is meant": (
        "own/trainer.yaml",
        "nested.yaml",
        "step train, key component (pipeline.yml:17): trainer:0.0.3 is a pipeline component (nested.yaml)",
    ),
    "a file that is no component": (
        "own/trainer.yaml",
        "own/list.yaml",
        "step train, key component (pipeline.yml:17): own/list.yaml does not describe a component",
    ),
    "an environment's file that is none": (
        "own/environment.yaml",
        "own/list.yaml",
        "own/list.yaml: it is a list",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_a_mistake_in_allranks_yaml_is_one_message(project: Path, old: str, new: str, message: str) -> None:
    write(
        project,
        "nested.yaml",
        "type: pipeline\nname: trainer\njobs: {a: {type: command, command: ls, environment: azureml:x:1}}\n",
    )
    write(project, "own/list.yaml", "- 1\n")
    assert NAMES.count(old) == 1
    write(project, "allranks.yaml", NAMES.replace(old, new))
    (found,) = problems()
    assert found.replace(f"{project}/", "").startswith(message)
