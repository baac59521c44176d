"""What azure-ai-ml accepts and drops is an error of `allranks check` and of a run, which a comment can ignore."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.errors import InputError
from allranks.runs.workspace import Workspace

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


OURS = ("unknown-port", "value-outside-enum", "dangling-binding", "asset-id", "repeated-key", "ignored-key")


def refused_by_run(folder: Path) -> set[str]:
    """What a run refuses, before it starts anything."""
    try:
        jobs.read(folder / "pipeline.yml", {}, Workspace(folder / "workspace"), track=False)
    except InputError as error:
        return {problem.found for problem in error.problems}
    return set()


def problems(folder: Path, pipeline: str) -> tuple[list[str], list[str]]:
    """The errors that azure-ai-ml has too, and the rules of those in what it accepts."""
    (folder / "component.yaml").write_text(COMPONENT)
    (folder / "pipeline.yml").write_text(pipeline)
    checked = jobs.check(folder / "pipeline.yml", folder=folder / "workspace")
    assert {problem.found for problem in checked.problems} == refused_by_run(folder)
    ours = [problem for problem in checked.problems if problem.rule in OURS]
    return [problem.found for problem in checked.problems if problem not in ours], [problem.rule for problem in ours]


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
    found = jobs.check(tmp_path / "job.yml", folder=tmp_path / "workspace")
    assert found.problems == ()
    assert "a pipeline job of a pipeline component" in found.machine[0].found


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("style: cool", "styles: cool", "unknown-port"),
        ("style: cool", "style: hot", "value-outside-enum"),
        ("settings: {default_compute:", "settings: {default_computer:", "ignored-key"),
        ("type: pipeline\n", "tags: {a: '1'}\ntype: pipeline\ntags: {b: '2'}\n", "repeated-key"),
    ],
)
def test_a_comment_ignores_it_in_a_check_and_in_a_run(tmp_path: Path, old: str, new: str, rule: str) -> None:
    (tmp_path / "component.yaml").write_text(COMPONENT)
    text = PIPELINE.replace(old, new, 1)
    (tmp_path / "pipeline.yml").write_text(text)
    (problem,) = jobs.check(tmp_path / "pipeline.yml", folder=tmp_path / "workspace").problems
    assert (problem.rule, problem.ignorable) == (rule, True)
    (tmp_path / "pipeline.yml").write_text(f"# allranks: ignore {rule}\n{text}")
    assert jobs.check(tmp_path / "pipeline.yml", folder=tmp_path / "workspace").problems == ()
    assert refused_by_run(tmp_path) == set()


def test_a_file_for_an_input_of_the_older_type_path(tmp_path: Path) -> None:
    """It takes files and folders."""
    (tmp_path / "data.json").write_text("{}")
    text = PIPELINE.replace("style: cool", "data: {path: data.json}")
    (tmp_path / "component.yaml").write_text(COMPONENT.replace("inputs:\n", "inputs:\n  data: {type: path}\n"))
    (tmp_path / "pipeline.yml").write_text(text)
    assert jobs.check(tmp_path / "pipeline.yml", folder=tmp_path / "workspace").problems == ()
