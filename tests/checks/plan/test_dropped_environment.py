"""An environment that is set on a step is not sent, and so not used; that of a job by itself is."""

from datetime import date
from pathlib import Path

import pytest

from allranks.errors import Problem
from allranks.plan.graph import Plan
from allranks.plan.reader import read_job
from pipeline_files import HEAD, read, write
from plan_findings import warnings

TODAY = date(2026, 11, 1)

IN_PYTHON = """
@dsl.pipeline()
def digits(data: Input(type="uri_folder")):
    step = train(data=data)
    step.environment = "{}"
"""

IN_YAML = """\
type: pipeline
inputs: {{data: {{type: uri_folder, path: data}}}}
jobs:
  step: {{type: command, component: ./train.yml, environment: "{}", inputs: {{data: "${{{{parent.inputs.data}}}}"}}}}
"""


def found(plan: Plan) -> list[Problem]:
    return [warning for warning in warnings(plan, TODAY) if warning.rule == "ignored-environment"]


@pytest.mark.parametrize(("name", "text"), [("x.py", HEAD + IN_PYTHON), ("x.yml", IN_YAML)])
def test_the_step_runs_in_its_components(here: Path, name: str, text: str) -> None:
    plan = read(write(here, name, text.format("azureml:other:2")), {"data": "data"})
    (warning,) = found(plan)
    assert warning.where.startswith("step step, key environment")
    assert "azureml:other:2" in warning.found
    assert str(plan.graph.nodes[0].environment) == "azureml:torch@latest"
    assert "azureml:torch@latest" in warning.expected

    same = read(write(here, name, text.format("azureml:torch@latest")), {"data": "data"})
    assert found(same) == []
    assert same == plan


def test_a_job_by_itself_runs_in_its_own(here: Path) -> None:
    from azure.ai.ml import command

    job = command(command="ls", environment="azureml:first:1", compute="x")
    job.environment = "azureml:own:1"
    plan = read_job(job, here / "snapshots")
    assert found(plan) == []
    assert str(plan.graph.nodes[0].environment) == "azureml:own:1"
