"""What the plan of a job says, by which it runs on this machine, is what azure-ai-ml sends of it."""

from pathlib import Path
from typing import Any

from commands import Command, command, only_run, project, quick
from fake.references import parse
from fake.service import FakeAzure

from allranks.api import jobs
from allranks.plan.graph import Step
from allranks.plan.ports import Literal
from allranks.workspace import Workspace
from allranks_command import write

__all__ = ["command", "project", "quick"]

COMPONENT = """\
name: train
version: "1"
type: command
inputs:
  data: {type: uri_folder, optional: true}
  lr: {type: number, default: 0.1}
  kind: {type: string, optional: true}
  epochs: {type: integer, optional: true}
  fast: {type: boolean, default: true}
outputs:
  model: {type: uri_folder}
environment: {image: "python:3.12"}
environment_variables: {A: "1"}
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 2}
command: >-
  echo $[[${{inputs.data}}]] ${{inputs.lr}} $[[${{inputs.kind}}]] $[[${{inputs.epochs}}]] ${{inputs.fast}}
  ${{outputs.model}}
"""
PIPELINE = """\
from azure.ai.ml import MpiDistribution, TensorFlowDistribution, dsl, load_component
from azure.ai.ml.entities import JobResourceConfiguration

train = load_component(source="./train.yml")


@dsl.pipeline(default_compute="cpu-cluster")
def pipeline():
    plain = train(lr=0.5, kind="large", epochs=3, fast=False)
    small = train(lr=1e-05, kind="1", data=plain.outputs.model)
    small.resources = JobResourceConfiguration(instance_count=3)
    small.environment_variables = {"B": "2", "C": "3"}
    train().distribution = MpiDistribution(process_count_per_instance=3)
    train().distribution = TensorFlowDistribution(worker_count=2, parameter_server_count=1)
"""


def planned(step: Step) -> dict[str, Any]:
    values = {port.name: port.value.value for port in step.inputs if isinstance(port.value, Literal)}
    return {
        "command": step.command,
        "image": step.environment.image,
        "distribution": type(step.distribution).__name__.lower(),
        "instances": step.instance_count,
        "variables": step.environment_variables,
        "values": {name: str(value) for name, value in values.items()},
    }


def sent(azure: FakeAzure, node: dict[str, Any]) -> dict[str, Any]:
    found = parse(node["componentId"])
    assert found is not None
    spec = azure.components[found.name, found.version]["properties"]["componentSpec"]
    environment = parse(spec["environment"])
    assert environment is not None
    resources = {**spec["resources"], **(node.get("resources") or {})}
    distribution = node.get("distribution") or spec["distribution"]
    values = {name: port.get("default") for name, port in spec["inputs"].items() if "default" in port}
    values |= {
        name: port["value"] for name, port in (node.get("inputs") or {}).items() if not port["value"].startswith("${{")
    }
    return {
        "command": spec["command"],
        "image": azure.environments[environment.name, environment.version]["properties"]["image"],
        "distribution": (distribution.get("distribution_type") or distribution["type"]).lower(),
        "instances": resources["instance_count"],
        "variables": node.get("environment_variables") or {},
        "values": {name: str(value) for name, value in values.items()},
    }


def test_the_settings_of_the_plan_are_those_that_are_sent(azure: FakeAzure, command: Command, project: Path) -> None:
    """The variables of a component are not sent: the plan does not use them."""
    write(project, "train.yml", COMPONENT)
    file = write(project, "pipeline.py", PIPELINE)
    done = command("submit", "pipeline.py", "--no-stream")
    assert done.code == 0, done.err
    properties = only_run(azure).properties
    assert properties is not None
    steps = jobs.read(str(file), {}, Workspace(project / ".allranks")).graph.nodes
    assert [step.name for step in steps] == list(properties["jobs"])
    for step in steps:
        assert isinstance(step, Step)
        assert planned(step) == sent(azure, properties["jobs"][step.name]), step.name
