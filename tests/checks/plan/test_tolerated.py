"""What azure-ai-ml ignores is a warning of `allranks check`, and what it refuses is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.checks.plan import tolerated

COMPONENT = """\
name: train
version: "1"
type: command
environment: azureml:torch:1
inputs:
  style: {type: string, enum: [warm, cool], default: warm}
command: python train.py ${{inputs.style}}
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: "azureml:cpu"}
jobs:
  train:
    type: command
    component: component.yaml
    inputs: {style: cool}
"""


def problems(folder: Path, pipeline: str) -> tuple[list[str], list[str]]:
    """The errors, and the rules of what is ignored."""
    (folder / "component.yaml").write_text(COMPONENT)
    (folder / "pipeline.yml").write_text(pipeline)
    found = jobs.check(folder / "pipeline.yml", folder=folder / "workspace").problems
    refused, ignored, _ = tolerated.separated(found)
    return [problem.found for problem in refused], [problem.rule for problem in ignored]


@pytest.mark.parametrize(
    ("old", "new", "errors", "rules"),
    [
        ("cool", "cool", [], []),
        ("style: cool", "styles: cool", [], ["unknown-port"]),
        ("style: cool", "style: hot", [], ["value-outside-enum"]),
        ("style: cool", "style: '${{parent.inputs.season}}'", [], ["dangling-binding"]),
        ("style: cool", "style: '${{parent.jobs.prepare.outputs.style}}'", [], ["dangling-binding"]),
        ("component: component.yaml", "component: azureml://registries/x/parts/y/versions/1", [], ["asset-id"]),
        ("type: pipeline\n", "tags: {a: '1'}\ntype: pipeline\ntags: {b: '2'}\n", [], ["repeated-key"]),
        (
            "type: pipeline\n",
            "tags: {a: '1'}\ntype: pipeline\ntags: {b: '2'}\ndisplay_nam: x\n",
            ["Azure ML has no such key"],
            ["repeated-key"],
        ),
        ("default_compute", "default_computer", [], ["ignored-key"]),
        ("type: pipeline\n", "type: pipeline\ndisplay_nam: x\n", ["Azure ML has no such key"], []),
    ],
)
def test_each(tmp_path: Path, old: str, new: str, errors: list[str], rules: list[str]) -> None:
    assert problems(tmp_path, PIPELINE.replace(old, new, 1)) == (errors, rules)


def test_a_pipeline_job_of_a_component_is_not_run_here(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text("type: pipeline\ncomponent: inner.yml\n")
    found = jobs.check(tmp_path / "job.yml", folder=tmp_path / "workspace").problems
    refused, ignored, here = tolerated.separated(found)
    assert (refused, ignored) == ([], [])
    assert "a pipeline job of a pipeline component" in here[0].found


def test_a_file_for_an_input_of_the_older_type_path(tmp_path: Path) -> None:
    """It takes files and folders."""
    (tmp_path / "data.json").write_text("{}")
    text = PIPELINE.replace("style: cool", "data: {path: data.json}")
    (tmp_path / "component.yaml").write_text(COMPONENT.replace("inputs:\n", "inputs:\n  data: {type: path}\n"))
    (tmp_path / "pipeline.yml").write_text(text)
    assert jobs.check(tmp_path / "pipeline.yml", folder=tmp_path / "workspace").problems == ()
