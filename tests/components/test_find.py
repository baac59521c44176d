"""The components of a project, found and described; and what is said of those that are broken."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from allranks.catalog.declared_ports import DATA
from allranks.catalog.find import ComponentInfo, components_folder, find_components, find_specs
from allranks.errors import InputError, Problem
from allranks.sdk.session import session

PROJECT = Path(__file__).parents[2] / "components"

YAML = """
type: command
name: greet
version: "2"
description: |
  Greets
  somebody.
inputs:
  who: {type: string, enum: [you, me], default: me, description: Whom.}
  times: {type: integer, min: 1, max: 9, default: 3}
  rate: {type: number, default: 0.5}
  loud: {type: boolean, default: true}
  data: {type: uri_folder, optional: true}
outputs:
  said: {type: uri_file, description: What was said.}
command: echo ${{inputs.who}} ${{outputs.said}}
environment: azureml:greeting@latest
distribution: {type: pytorch, process_count_per_instance: 4}
resources: {instance_count: 3}
is_deterministic: false
"""

PYTHON = """
from mldesigner import Input, Output, command_component
from helper import DEFAULT

@command_component(version="1", environment="azureml:none:1")
def first(out: Output(type="uri_folder"), count: Input(type="integer") = DEFAULT):
    "The first."

@command_component(version="1", environment="azureml:none:1")
def second(out: Output(type="uri_folder")):
    "The second."
"""


def component(root: Path, name: str, **files: str) -> Path:
    """A component's folder with its files; `component_yaml` is component.yaml."""
    folder = root / name
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file.replace("_", ".")).write_text(content)
    return folder


def by_name(components: tuple[ComponentInfo, ...]) -> Mapping[str, ComponentInfo]:
    return {component.name: component for component in components}


def problems(root: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as error:
        find_components(root)
    return error.value.problems


def test_a_yaml_component_is_described(tmp_path: Path) -> None:
    folder = component(tmp_path, "greet", component_yaml=YAML)
    (greet,) = find_components(tmp_path)
    assert (greet.name, greet.version, greet.description) == ("greet", "2", "Greets somebody.")
    assert (greet.distribution, greet.instance_count, greet.process_count_per_instance) == ("pytorch", 3, 4)
    assert greet.environment.removeprefix("azureml:") == "greeting@latest"
    assert not greet.deterministic
    assert greet.path == folder / "component.yaml"
    ports = {port.name: port for port in greet.inputs}
    assert (ports["who"].enum, ports["who"].default, ports["who"].description) == (("you", "me"), "me", "Whom.")
    assert (ports["times"].minimum, ports["times"].maximum, ports["times"].default) == (1, 9, 3)
    assert (ports["rate"].default, ports["loud"].default) == (0.5, True)
    assert ports["data"].optional
    assert [(port.name, port.type, port.description) for port in greet.outputs] == [
        ("said", "uri_file", "What was said.")
    ]


def test_a_python_file_may_hold_several_components_and_use_its_neighbours(tmp_path: Path) -> None:
    component(tmp_path, "one", component_py=PYTHON, helper_py="DEFAULT = 5")
    component(tmp_path, "two", component_py=PYTHON.replace("first", "third"), helper_py="DEFAULT = 6")
    path = list(sys.path)
    found = find_components(tmp_path)
    assert [info.name for info in found] == ["first", "second", "second", "third"]
    assert [by_name(found)[name].inputs[0].default for name in ("first", "third")] == [5, 6]
    assert by_name(found)["first"].distribution == "none"
    assert sys.path == path
    assert "helper" not in sys.modules


def test_components_are_found_at_any_depth(tmp_path: Path) -> None:
    greet = component(tmp_path / "group", "greet", component_yaml=YAML)
    (greet / "variants.yaml").write_text("greet_loudly: {}\n")
    component(greet, "loudly", component_yaml=YAML.replace("name: greet", "name: greet_loudly"))
    wave = component(tmp_path / "group/deeper", "wave", component_yaml=YAML.replace("name: greet", "name: wave"))
    component(wave, "code", component_yaml=YAML)
    component(tmp_path / "_drafts", "broken", component_yaml="type: [")
    assert [info.name for info in find_components(tmp_path)] == ["greet", "greet_loudly", "wave"]


def test_one_component_by_its_own_folder(tmp_path: Path) -> None:
    folder = component(tmp_path, "greet", component_yaml=YAML)
    component(tmp_path, "broken", component_yaml="type: [")
    assert [info.name for info in find_components(folder)] == ["greet"]


def test_the_project_is_found_from_a_folder_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(tmp_path / "components", "greet", component_yaml=YAML)
    (tmp_path / "pipelines/deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "pipelines/deep")
    assert [info.name for info in find_components()] == ["greet"]


def test_no_project(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder 'components' in this folder or its parents"):
        components_folder(tmp_path)


@pytest.mark.parametrize(
    ("files", "place", "said"),
    [
        ({"component_yaml": "type: command\n  name: ["}, "component.yaml:2", "not YAML"),
        ({"component_yaml": YAML.replace("type: command", "type: nothing")}, "component.yaml", "nothing"),
        ({"component_yaml": YAML.replace("command: echo", "order: echo")}, "key command", "is missing"),
        ({"component_yaml": YAML.replace("azureml:greeting@latest", "greeting")}, "key environment", "greeting"),
        ({"component_yaml": YAML.replace("azureml:greeting@latest", "file:no.yaml")}, "key environment", "no.yaml"),
        ({"component_py": "def first(:"}, "component.py", "SyntaxError"),
        ({"component_py": PYTHON}, "component.py", "No module named 'helper'"),
        ({"component_py": "x = 1"}, "component.py", "no component"),
        ({"component_yaml": YAML, "component_py": PYTHON}, "greet", "2 specs of a component"),
    ],
    ids=[
        "no YAML",
        "unknown type",
        "no command",
        "no environment",
        "environment's file missing",
        "no Python",
        "missing module",
        "nothing decorated",
        "two specs",
    ],
)
def test_a_broken_component_is_named(tmp_path: Path, files: dict[str, str], place: str, said: str) -> None:
    component(tmp_path, "greet", **files)
    (problem,) = problems(tmp_path)
    assert place in problem.where
    assert str(tmp_path / "greet") in problem.where
    assert said in problem.found
    assert "\n" not in problem.found
    assert problem.fix


def test_every_broken_component_is_named_at_once(tmp_path: Path) -> None:
    component(tmp_path, "good", component_yaml=YAML)
    component(tmp_path, "bad", component_yaml="type: [")
    component(tmp_path, "worse", component_py="x = 1")
    assert [Path(problem.where).parent.name for problem in problems(tmp_path)] == ["bad", "worse"]


def test_a_folder_without_components(tmp_path: Path) -> None:
    assert problems(tmp_path)[0].found == "no component"
    assert problems(tmp_path / "none")[0].found == "no such folder"


def test_importing_the_catalog_does_not_import_the_sdk() -> None:
    script = "import sys, allranks.catalog.find; sys.exit(bool({'azure', 'mldesigner', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_project_s_components_say_what_they_do() -> None:
    for spec in find_specs(PROJECT):
        component = yaml.safe_load(spec.read_text())
        assert component["name"] == f"allranks_{spec.parent.name}"
        assert {"version", "display_name", "environment"} <= component.keys()
        assert len(component["description"]) > 40
        for modes, ports in (("ro_mount download", "inputs"), ("rw_mount upload", "outputs")):
            for name, port in component.get(ports, {}).items():
                assert port["description"].strip().endswith("."), (spec, name)
                if port["type"] in DATA:
                    assert port.get("mode") in modes.split(), (spec, name)
                elif port["type"] in ("integer", "number") and ports == "inputs":
                    assert "min" in port, (spec, name)
                    assert port.get("optional") or "default" in port, (spec, name)
        if spec.parent.name in ("register_model", "prepare_images"):
            assert component.get("is_deterministic", True) == (spec.parent.name == "prepare_images")


def test_a_training_s_snapshot_holds_the_runtime_and_nothing_of_the_engine() -> None:
    with session():
        from azure.ai.ml import load_component

        spec = load_component(PROJECT / "image_classification/train_image_classifier/component.yaml")
        with spec._build_code() as code:
            files = {str(file.relative_to(code.path)) for file in Path(code.path).rglob("*.py")}
    assert {"train.py", "allranks_steps/history.py", "allranks/errors.py", "allranks/runtime/script.py"} <= files
    packages = {file.split("/")[1] for file in files if file.startswith("allranks/") and file.count("/") > 1}
    assert packages == {"contract", "hardware", "runtime"}
