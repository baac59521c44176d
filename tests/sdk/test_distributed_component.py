"""The older DistributedComponent, in a pipeline in YAML and in Python, is read as the command component that it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from allranks.catalog import releases
from allranks.checks.component.subject import read_yaml
from allranks.errors import InputError
from allranks.plan.graph import Step
from allranks.plan.reader import opened
from allranks.sdk.distributed_component import as_command_component
from allranks.sdk.spec_files import Kind, kind

SPEC = """\
$schema: https://componentsdk.azureedge.net/jsonschema/DistributedComponent.json
name: samples.com.Fit
version: 0.0.1
type: DistributedComponent
tags: old
inputs:
  words: {type: [AnyFile, AnyDirectory]}
  file: {type: AnyFile, optional: true}
  rate: {type: Float, default: 0.5, min: 0, max: 1}
  note: {type: String, optional: true, description: of the run}
outputs:
  model: {type: path}
launcher:
  type: torch.distributed
  additional_arguments: >-
    python fit.py --words {inputs.words} [--note {inputs.note}] --rate={inputs.rate} --home $HOME
    --model {outputs.model}
environment:
  conda: {pip_requirements_file: requirements.txt}
"""
COMMAND = (
    "python fit.py --words '${{inputs.words}}' $[[--note '${{inputs.note}}']] --rate='${{inputs.rate}}' "
    "--home '$HOME' --model '${{outputs.model}}'"
)
IN_YAML = """\
type: pipeline
jobs:
  first:
    component: ./fit.yaml
    inputs: {words: {type: uri_folder, path: .}}
    resources: {instance_count: 2}
    distribution: {type: pytorch, process_count_per_instance: 4}
"""
IN_PYTHON = """\
from azure.ai.ml import Input, dsl, load_component
fit = load_component("fit.yaml")

@dsl.pipeline()
def both():
    first = fit(words=Input(path="."))
    first.runsettings.resource_layout.configure(instance_count=2, process_count_per_node=4)
    second = fit(words=first.outputs.model)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "fit.yaml": SPEC,
        "fit.py": "",
        "requirements.txt": "# old\nnumpy\n",
        "job.yml": IN_YAML,
        "job.py": IN_PYTHON,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra/notes.txt").write_text("")
    (tmp_path / "fit.additional_includes").write_text("extra/notes.txt\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("file", ["job.yml", "job.py"])
def test_a_pipeline_has_it_as_a_step_with_its_layout(file: str, folder: Path) -> None:
    with opened(str(folder / file), {}) as job:
        steps = job.plan().graph.nodes
    first = steps[0]
    assert isinstance(first, Step)
    assert (first.command, first.instance_count, first.distribution.process_count_per_instance) == (COMMAND, 2, 4)
    assert {port.name: (port.type, port.optional) for port in first.inputs} == {
        "words": ("uri_folder", False),
        "file": ("uri_file", True),
        "rate": ("number", False),
        "note": ("string", True),
    }
    for second in steps[1:]:  # the layout is the step's, not the component's
        assert isinstance(second, Step)
        assert (second.instance_count, second.distribution.process_count_per_instance) == (1, 1)


def test_it_runs_by_itself(folder: Path) -> None:
    with opened("fit.yaml", {"words": str(folder), "instance_count": "2", "process_count_per_instance": "3"}) as job:
        (step,) = job.plan().graph.nodes
    assert isinstance(step, Step)
    assert (step.instance_count, step.distribution.process_count_per_instance) == (2, 3)


def test_it_is_released_as_a_command_component(folder: Path) -> None:
    (folder / "library").mkdir()
    for name in ("fit.py", "requirements.txt"):
        (folder / name).rename(folder / "library" / name)
    (folder / "library/component.yaml").write_text(SPEC)
    (release,) = releases.release(folder / "staged", folder / "library")
    spec = release.spec
    assert (spec["type"], spec["command"], spec["environment"]["conda_file"]["dependencies"][-1]) == (
        "command", COMMAND, {"pip": ["numpy"]},
    )  # fmt: skip


def test_it_is_checked_as_a_component(folder: Path) -> None:
    subject = read_yaml(folder / "fit.yaml")
    assert (kind(folder / "fit.yaml"), subject.name, set(subject.entries)) == (
        Kind.COMPONENT, "samples_com_fit", {folder / "fit.py"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"environment": {"name": "AzureML-Minimal"}, "launcher": {"type": "mpi", "additional_arguments": "a b"}},
            {"environment": "azureml:AzureML-Minimal@latest", "command": "a b", "resources": {"instance_count": 1}},
        ),
        (
            {"environment": {"docker": {"build": {"dockerfile": "file:./Dockerfile"}}}},
            {"environment": {"build": {"path": ".", "dockerfile_path": "./Dockerfile"}}},
        ),
        (
            {"environment": {"docker": {"image": "i:1"}, "conda": {"conda_dependencies_file": "conda.yml"}}},
            {"environment": {"image": "i:1", "conda_file": "conda.yml"}},
        ),
        (
            {"runsettings": {"resource_layout": {"node_count": 3, "process_count_per_node": 2}}},
            {"resources": {"instance_count": 3}, "distribution": {"type": "pytorch", "process_count_per_instance": 2}},
        ),
        ({}, {"additional_includes": ["extra/notes.txt"]}),
    ],
)  # fmt: skip
def test_keys(change: dict[str, Any], expected: dict[str, Any], folder: Path) -> None:
    made = as_command_component({**yaml.safe_load(SPEC), **change}, folder / "fit.yaml")
    assert {key: made[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("torch.distributed", "horovod", "fit.yaml:14, key launcher.type.*'horovod'.*mpi or torch.distributed"),
        ("launcher:", "starter:", "it has no launcher"),
        ("inputs:", "runsettings: fast\ninputs:", "fit.yaml:6, key runsettings.*'fast'.*keys and values"),
        ("tags: old", "colour: red", "fit.yaml:5, key colour.*unknown key"),
        ("$HOME", '"', "key launcher.additional_arguments.*No closing quotation"),
        ("requirements.txt", "nothing.txt", "nothing.txt cannot be read"),
    ],
)
@pytest.mark.parametrize("file", ["job.yml", "job.py"])
def test_bad_input(file: str, old: str, new: str, message: str, folder: Path) -> None:
    (folder / "fit.yaml").write_text(SPEC.replace(old, new))
    with pytest.raises(InputError, match=f"(?s){message}"), opened(str(folder / file), {}):
        pass


def test_a_setting_that_azure_ai_ml_does_not_have(folder: Path) -> None:
    (folder / "job.py").write_text(IN_PYTHON.replace("runsettings.resource_layout", "runsettings.priority"))
    with pytest.raises(InputError, match=r"runsettings\.priority.*no such setting"), opened("job.py", {}):
        pass
