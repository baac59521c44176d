"""A finding has the same level in every command. What azure-ai-ml accepts and drops is a warning."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.checks.plan import findings
from allranks.errors import InputError, Problem
from allranks.local.options import Options
from allranks.plan.reader import opened
from allranks.workspace import Workspace

pytestmark = pytest.mark.slow  # each is also checked by azure-ai-ml

COMPONENT = """\
name: train
version: "1"
type: command
environment: azureml:torch:1
inputs:
  style: {type: string, enum: [warm, cool], default: warm}
  rate: {type: number, enum: ['1.0', '2.5'], default: 1.0}
  note: {type: string, optional: true}
command: python train.py ${{inputs.style}} ${{inputs.rate}} $[[${{inputs.note}}]]
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


def by_check(folder: Path) -> set[Finding]:
    return found(jobs.check(folder / "pipeline.yml", folder=folder / "workspace").found)


def by_run(folder: Path) -> set[Finding]:
    """What `allranks run` and `allranks.run` refuse, and warn of, before they start anything."""
    warnings: list[Problem] = []
    place = Workspace(folder / "workspace")
    try:
        jobs.read(folder / "pipeline.yml", {}, place, Options(track=False), warn=warnings.extend)
    except InputError as error:
        warnings.extend(error.problems)
    return found(warnings)


def by_submit(folder: Path) -> set[Finding]:
    try:
        with opened(str(folder / "pipeline.yml"), {}) as job:
            return found(findings(job.plan(), here=False).found)
    except InputError as error:
        return found(error.problems)


Finding = tuple[str, str, str]
OURS = (
    *("unknown-port", "value-outside-enum", "dangling-binding", "asset-id"),
    *("repeated-key", "unquoted-value", "ignored-key", "no-environment", "no-compute", "unknown-expression"),
)
UNKNOWN = "Azure ML has no such key"


def found(problems: Iterable[Problem]) -> set[Finding]:
    """What was found, its level and its rule."""
    ours = (each for each in problems if each.rule in OURS or each.found == UNKNOWN)
    return {(each.found, each.level.value, each.rule) for each in ours}


def project(folder: Path, pipeline: str) -> None:
    (folder / "component.yaml").write_text(COMPONENT)
    (folder / "pipeline.yml").write_text(pipeline)


REPEATED = "tags: {a: '1'}\ntype: pipeline\ntags: {b: '2'}\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("cool", "cool", []),
        ("style: cool", "styles: cool", [("warning", "unknown-port")]),
        ("style: cool", "style: hot", [("error", "value-outside-enum")]),
        ("style: cool", "rate: 2", [("error", "value-outside-enum")]),
        ("style: cool", "note: '${{parent.name}}'", [("warning", "unknown-expression")]),
        ("style: cool", "style: '${{parent.inputs.season}}'", [("error", "dangling-binding")]),
        ("type: pipeline\n", REPEATED + "displ_nam: x\n", [("error", "unknown-key"), ("warning", "repeated-key")]),
        ("style: cool", "note: no", [("warning", "unquoted-value")]),
        ("style: cool", "note: 0.10", []),
        (
            "style: cool}",
            "style: cool}\n    environment_variables: {A: no, B: '010', C: 1.5}",
            [("warning", "unquoted-value")],
        ),
        ("default_compute", "default_computer", [("warning", "ignored-key"), ("warning", "no-compute")]),
        ('{default_compute: "azureml:cpu"}', "{force_rerun: false}", [("warning", "no-compute")]),
        ('settings: {default_compute: "azureml:cpu"}', "# allranks: ignore no-compute\nsettings: {}", []),
        ('{default_compute: "azureml:cpu"}', "{default_compute: serverless}", []),
        ("component: component.yaml\n    inputs: {style: cool}", "command: ls", [("warning", "no-environment")]),
        ("component: component.yaml\n    inputs: {style: cool}", "command: ls\n    environment: azureml:x:1", []),
        ("type: pipeline\n", "type: pipeline\ndisplay_nam: x\n", [("error", "unknown-key")]),
    ],
)
def test_what_azure_ai_ml_accepts_is_no_error(
    tmp_path: Path, old: str, new: str, expected: list[tuple[str, str]]
) -> None:
    project(tmp_path, PIPELINE.replace(old, new, 1))
    assert sorted((level, rule or "unknown-key") for _, level, rule in by_check(tmp_path)) == expected


def test_a_finding_has_one_level_in_every_command(tmp_path: Path) -> None:
    """A warning of the reader and an error of the check; then an error of the reader."""
    text = PIPELINE.replace("style: cool", "styles: cool, style: hot")
    project(tmp_path, text.replace('{default_compute: "azureml:cpu"}', "{}"))
    assert len(by_check(tmp_path)) == 3
    assert by_check(tmp_path) == by_run(tmp_path) == by_submit(tmp_path)
    project(tmp_path, PIPELINE.replace("type: pipeline\n", REPEATED + "displ_nam: x\n"))
    assert len(by_check(tmp_path)) == 2
    assert by_check(tmp_path) == by_run(tmp_path) == by_submit(tmp_path)


def test_a_uri_of_an_unknown_form_is_an_error(tmp_path: Path) -> None:
    project(
        tmp_path, PIPELINE.replace("component: component.yaml", "component: azureml://registries/x/parts/y/versions/1")
    )
    assert [finding[1:] for finding in by_run(tmp_path)] == [("error", "asset-id")]
    assert by_check(tmp_path) == by_run(tmp_path)


@pytest.mark.parametrize(
    ("component", "found"),
    [
        ("azureml:inner:1", "this machine does not have azureml:inner:1"),
        ("no.yml", "no.yml does not exist"),
    ],
)
def test_a_component_that_a_job_cannot_have(tmp_path: Path, component: str, found: str) -> None:
    (tmp_path / "job.yml").write_text(f"type: pipeline\ncomponent: {component}\n")
    assert [each.found for each in jobs.check(tmp_path / "job.yml", folder=tmp_path / "workspace").found] == [found]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("style: cool", "styles: cool", "unknown-port"),
        ("settings: {default_compute:", "settings: {force_reruns: true, default_compute:", "ignored-key"),
    ],
)
def test_a_comment_ignores_it_in_a_check_and_in_a_run(tmp_path: Path, old: str, new: str, rule: str) -> None:
    (tmp_path / "component.yaml").write_text(COMPONENT)
    text = PIPELINE.replace(old, new, 1)
    (tmp_path / "pipeline.yml").write_text(text)
    assert [finding[2] for finding in by_check(tmp_path)] == [rule]
    (tmp_path / "pipeline.yml").write_text(f"# allranks: ignore {rule}\n{text}")
    assert by_check(tmp_path) == by_run(tmp_path) == set()


def test_a_file_for_an_input_of_the_older_type_path(tmp_path: Path) -> None:
    """It takes files and folders."""
    (tmp_path / "data.json").write_text("{}")
    text = PIPELINE.replace("style: cool", "data: {path: data.json}")
    (tmp_path / "component.yaml").write_text(COMPONENT.replace("inputs:\n", "inputs:\n  data: {type: path}\n"))
    (tmp_path / "pipeline.yml").write_text(text)
    assert jobs.check(tmp_path / "pipeline.yml", folder=tmp_path / "workspace").problems == ()
