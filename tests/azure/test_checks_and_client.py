"""`allranks check` gives an error that cannot be ignored where the real client refuses to send a job."""

import contextlib
from pathlib import Path

import pytest
from azure.ai.ml import load_job
from commands import quick
from fake.service import FakeAzure

from allranks.api import jobs
from allranks.sdk import session

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")

COMPONENT = """\
name: train
version: "1"
type: command
environment: {image: "python:3.12"}
inputs:
  data: {type: uri_folder}
  weights: {type: uri_folder, optional: true}
  lr: {type: number, default: 0.1}
outputs:
  model: {type: uri_folder}
command: python train.py ${{inputs.data}} $[[${{inputs.weights}}]] ${{inputs.lr}} ${{outputs.model}}
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:cpu-cluster}
inputs: {data: {%s}}
jobs:
  train: {type: command, component: component.yaml, inputs: {data: "${{parent.inputs.data}}"}}
  again: {type: command, component: component.yaml, inputs: {data: "${{parent.inputs.data}}"%s}}
"""
LOCAL = "type: uri_folder, path: data"
JOB = """\
command: ls ${{inputs.data}}
environment: {image: "python:3.12"}
compute: azureml:cpu-cluster
inputs: {data: {%s}}
"""
FILES = {
    "a good pipeline": (PIPELINE % (LOCAL, ", weights: '${{parent.jobs.train.outputs.model}}'"), ""),
    "no value for data": (PIPELINE % ("type: uri_folder", ""), "binding"),
    "a path that does not exist": (JOB % "type: uri_folder, path: /path/to/local/data/folder", "data"),
    "a step that does not exist": (PIPELINE % (LOCAL, ", weights: '${{parent.jobs.trian.outputs.model}}'"), ""),
    "an id without a name": (JOB % "type: uri_file, path: 'azureml://registries/x/dataassets'", ""),
}
"""File -> the rule of its error; "" if it has none."""


@pytest.mark.parametrize(("text", "rule"), FILES.values(), ids=FILES)
def test_each(text: str, rule: str, tmp_path: Path, azure: FakeAzure) -> None:
    (tmp_path / "component.yaml").write_text(COMPONENT)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/words").write_text("a b")
    file = tmp_path / "job.yml"
    file.write_text(text)
    found = jobs.check(file, folder=tmp_path / "workspace").problems
    refused = [problem for problem in found if not problem.ignorable and problem.rule != "dangling-binding"]
    assert {problem.rule for problem in refused} == ({rule} if rule else set())
    with session.session(), contextlib.suppress(Exception):
        # Whether the service takes it is not the question.
        azure.client().jobs.create_or_update(load_job(file))
    is_sent = any(method == "PUT" and "/jobs/" in path for method, path, _ in azure.requests)
    assert is_sent is not bool(rule)
