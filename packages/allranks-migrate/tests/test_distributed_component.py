"""A DistributedComponent becomes the command component that it is, and the core says so where it finds one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from allranks.errors import InputError
from allranks.plan.graph import Step
from allranks.plan.reader import opened
from allranks.sdk.spec_files import Kind, kind
from allranks_migrate import migrate, sources

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
runsettings:
  resource_layout: {node_count: 2, process_count_per_node: 4}
"""
COMMAND = (
    "python fit.py --words '${{inputs.words}}' $[[--note '${{inputs.note}}']] --rate='${{inputs.rate}}' "
    "--home '$HOME' --model '${{outputs.model}}'"
)
IN_YAML = """\
type: pipeline
jobs:
  first: {component: ./fit.yaml, inputs: {words: {type: uri_folder, path: .}}}
"""
IN_PYTHON = """\
from azure.ai.ml import Input, dsl, load_component
fit = load_component("fit.yaml")

@dsl.pipeline()
def both():
    first = fit(words=Input(path="."))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "fit.yaml": SPEC,
        "fit.py": "",
        "requirements.txt": "# old\nnumpy\n",
        "job.yml": IN_YAML,
        "job.py": IN_PYTHON,
        "fit.additional_includes": "extra/notes.txt\n",
        "extra/notes.txt": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_becomes_a_command_component_that_runs_by_itself(folder: Path) -> None:
    assert sources(folder) == (folder / "fit.yaml",)
    done = migrate(folder / "fit.yaml", Path("new"))
    with opened(str(done.file), {"words": str(folder)}) as job:
        (step,) = job.plan().graph.nodes
    assert isinstance(step, Step)
    assert (step.command, step.instance_count, step.distribution.process_count_per_instance) == (COMMAND, 2, 4)
    assert {port.name: (port.type, port.optional) for port in step.inputs} == {
        "words": ("uri_folder", False),
        "file": ("uri_file", True),
        "rate": ("number", False),
        "note": ("string", True),
    }
    made = yaml.safe_load(done.file.read_text())
    assert (made["name"], made["code"], made["additional_includes"]) == (
        "samples_com_fit",
        "..",
        ["../extra/notes.txt"],
    )
    assert made["environment"]["conda_file"]["dependencies"][-1] == {"pip": ["numpy"]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"environment": {"name": "AzureML-Minimal"}, "launcher": {"type": "mpi", "additional_arguments": "a b"}},
            {"environment": "azureml:AzureML-Minimal@latest", "command": "a b"},
        ),
        (
            {"environment": {"docker": {"build": {"dockerfile": "file:./Dockerfile"}}}},
            {"environment": {"build": {"path": "..", "dockerfile_path": "./Dockerfile"}}},
        ),
        (
            {"environment": {"docker": {"image": "i:1"}, "conda": {"conda_dependencies_file": "conda.yml"}}},
            {"environment": {"image": "i:1", "conda_file": "../conda.yml"}},
        ),
    ],
)  # fmt: skip
def test_keys(change: dict[str, Any], expected: dict[str, Any], folder: Path) -> None:
    (folder / "fit.yaml").write_text(yaml.safe_dump({**yaml.safe_load(SPEC), **change}))
    made = yaml.safe_load(migrate(folder / "fit.yaml", Path("new")).file.read_text())
    assert {key: made[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("torch.distributed", "horovod", "fit.yaml:14, key launcher.type.*'horovod'.*mpi or torch.distributed"),
        ("launcher:", "starter:", "it has no launcher"),
        ("inputs:", "resources: fast\ninputs:", "fit.yaml:6, key resources.*'fast'.*keys and values"),
        ("tags: old", "colour: red", "fit.yaml:5, key colour.*unknown key"),
        ("$HOME", '"', "key launcher.additional_arguments.*No closing quotation"),
        ("requirements.txt", "nothing.txt", "nothing.txt cannot be read"),
        ("DistributedComponent\n", "command\n", "fit.yaml: it has another type"),
        (SPEC, "a: [", "fit.yaml:1: it is not YAML"),
    ],
)
def test_bad_input(old: str, new: str, message: str, folder: Path) -> None:
    (folder / "fit.yaml").write_text(SPEC.replace(old, new))
    with pytest.raises(InputError, match=f"(?s){message}"):
        migrate(folder / "fit.yaml", folder / "new")
    assert not (folder / "new").exists()


@pytest.mark.parametrize("file", ["job.yml", "job.py", "fit.yaml"])
def test_the_core_names_the_command_that_migrates_it(file: str, folder: Path) -> None:
    assert kind(folder / "fit.yaml") is Kind.COMPONENT
    with pytest.raises(InputError) as raised, opened(str(folder / file), {}):
        pass
    (problem,) = raised.value.problems
    assert "a DistributedComponent of the retired SDK v1" in problem.found
    assert problem.fix.startswith('pip install "allranks[migrate]", then: allranks migrate ')
