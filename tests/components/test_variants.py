"""Components that are generated from another one and a table of what differs."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from allranks.catalog import variants
from allranks.catalog.find import find_specs, run_target
from allranks.catalog.variants import merged, variants_of
from allranks.cli.main import app
from allranks.errors import InputError
from component_projects import YAML, make

TABLE = """\
greet_twice:
  display_name: Greet people twice
  description: Greets everybody in a file a second time.
  inputs:
    style: null
    tone: {enum: [warm, cool, none], default: none}
    pause: {type: number, min: 0.000001, max: 9.0, default: 0.5, description: Seconds between the two.}
    names: {type: uri_file, description: More names.}
  additional_includes: [../other/words.py, own.py, component.yaml]
  distribution: {type: mpi}
  command:
    $[[--style ${{inputs.style}}]]: ""
    python greet.py: python greet.py twice --spec component.yaml --pause ${{inputs.pause}} --names ${{inputs.names}}
"""


def variant(root: Path, table: str = TABLE) -> dict[str, Any]:
    folder = make(root)
    (folder / "variants.yaml").write_text(table)
    content: dict[str, Any] = yaml.safe_load(
        variants_of(folder / "component.yaml", folder / "variants.yaml")["greet_twice"]
    )
    return content


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        (["a"], {"a": "b"}, {"a": "b"}),
        ({"command": "run x  now"}, {"command": {"x now": "y"}}, {"command": "run y"}),
    ],
)
def test_a_merge_patch_as_rfc_7386_has_it_and_parts_of_texts(target: Any, patch: Any, result: Any) -> None:
    """All rows but the last are of the appendix of the RFC."""
    assert merged(target, patch) == result


def test_a_variant_is_the_spec_with_what_differs(tmp_path: Path) -> None:
    base, spec = yaml.safe_load(YAML), variant(tmp_path)
    assert (spec["name"], spec["display_name"], spec["version"]) == ("greet_twice", "Greet people twice", "1.2.0")
    assert spec["code"] == ".."
    assert spec["additional_includes"] == ["../../other/words.py", "../own.py", "../greet_twice"]
    assert spec["environment"] == base["environment"].replace("file:", "file:../")
    assert spec["distribution"] == {"type": "mpi"}
    assert list(spec["inputs"]) == ["people", "times", "tone", "loud", "pause", "names"]
    assert spec["inputs"]["tone"] == {**base["inputs"]["tone"], "enum": ["warm", "cool", "none"], "default": "none"}
    assert "style" not in spec["command"]
    added = "--pause ${{inputs.pause}} --names ${{inputs.names}}"
    assert spec["command"].startswith(f"python greet.py twice --spec greet_twice/component.yaml {added} --peop")
    assert spec["outputs"] == base["outputs"]


@pytest.mark.parametrize(
    ("table", "where", "found"),
    [
        ("greet: {version: '2'}", "variants.yaml:1", "variant 'greet'"),
        ("greet_twice: [1]", "variants.yaml:1", "list"),
        ("greet_twice:\n  inputs:\n    lr: null", "variants.yaml:3", "removes a key that does not exist"),
        ("greet_twice:\n  command: {python train.py: x}", "variants.yaml:2", "0 times"),
        ("greet_twice:\n  command: {inputs: x}", "variants.yaml:2", "5 times"),
    ],
)
def test_a_table_that_does_not_fit_the_spec(tmp_path: Path, table: str, where: str, found: str) -> None:
    with pytest.raises(InputError) as error:
        variant(tmp_path, table)
    assert where in error.value.problems[0].where
    assert found in error.value.problems[0].found


PLAIN = TABLE.replace("  additional_includes: [../other/words.py, own.py, component.yaml]\n", "")


def make_with_table(root: Path, table: str = PLAIN) -> Path:
    """Return the folder of a component, whose files are a second old, and which has a table."""
    folder = make(root)
    (folder / "variants.yaml").write_text(table)
    for file in folder.iterdir():
        os.utime(file, (file.stat().st_mtime - 1,) * 2)
    return folder


def test_variants_are_written_where_components_are_looked_for(tmp_path: Path) -> None:
    folder = make_with_table(tmp_path)
    generated = folder / "greet_twice/component.yaml"
    assert find_specs(tmp_path / "components") == (folder / "component.yaml", generated)
    first = generated.stat()
    assert find_specs(tmp_path / "components") == (folder / "component.yaml", generated)
    assert generated.stat().st_mtime_ns == first.st_mtime_ns
    (folder / "component.yaml").write_text(YAML.replace("default: 3", "default: 4"))
    assert list(variants.refresh_below(tmp_path)) == []
    assert yaml.safe_load(generated.read_text())["inputs"]["times"]["default"] == 4
    assert variants.refresh(folder) == ()
    (folder / "variants.yaml").write_text("{}")
    assert find_specs(tmp_path / "components") == (folder / "component.yaml",)


def test_a_variant_that_a_command_line_names_is_written(tmp_path: Path) -> None:
    generated = make_with_table(tmp_path) / "greet_twice/component.yaml"
    assert run_target(str(generated)) == str(generated)
    assert generated.is_file()


def test_check_reports_a_table_that_is_wrong(tmp_path: Path) -> None:
    folder = make_with_table(tmp_path, "greet_twice: [1]")
    assert "the keys that differ" in str(CliRunner().invoke(app, ["check", str(folder)]).exception)


def test_a_handwritten_spec_is_never_overwritten(tmp_path: Path) -> None:
    folder = make_with_table(tmp_path)
    own = folder / "greet_twice/component.yaml"
    own.parent.mkdir()
    own.write_text(YAML)
    os.utime(own, (0, 0))
    with pytest.raises(InputError, match="exists and was not generated"):
        variants.refresh(folder)
    assert own.read_text() == YAML
