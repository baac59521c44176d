"""Components that are generated from another one and a table of what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from allranks.catalog import variants
from allranks.catalog.variants import merged, spec_text
from allranks.cli.main import app
from allranks.errors import InputError
from component_projects import YAML, make

PROJECT = Path(__file__).parents[2] / "components"

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
    (each,) = variants.variants_of(folder)
    assert each.path == root / "components/greet/greet_twice/component.yaml"
    content: dict[str, Any] = yaml.safe_load(each.text)
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
    assert list(spec["inputs"]) == ["people", "names", "times", "tone", "loud", "pause"]
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


def test_written_once_and_checked_afterwards(tmp_path: Path) -> None:
    folder = make(tmp_path)
    (folder / "variants.yaml").write_text(
        TABLE.replace("  additional_includes: [../other/words.py, own.py, component.yaml]\n", "")
    )
    spec = folder / "component.yaml"
    (missing,) = variants.check([spec])
    assert "greet_twice/component.yaml is missing" in missing.found
    command = ["components", str(tmp_path / "components"), "--write-variants"]
    for said in ("written", "up to date"):
        assert said in CliRunner().invoke(app, command).stdout
    generated = tmp_path / "components/greet/greet_twice/component.yaml"
    assert list(variants.check([spec, generated])) == []
    spec.write_text(YAML.replace("default: 3", "default: 4"))
    assert "is out of date" in str(CliRunner().invoke(app, ["check", str(folder)]).exception)
    for specs in ([spec], [generated]):
        (stale,) = variants.check(specs)
        assert ("is out of date" in stale.found, stale.fix) == (True, "run allranks components --write-variants")
    variants.write([folder])
    (folder / "variants.yaml").write_text("{}")
    (left,) = variants.check([generated])
    assert (left.where, left.fix) == (f"{generated}:1", "remove it")


def test_a_handwritten_spec_is_never_overwritten(tmp_path: Path) -> None:
    folder = make(tmp_path)
    (folder / "variants.yaml").write_text(TABLE)
    own = tmp_path / "components/greet/greet_twice/component.yaml"
    own.parent.mkdir()
    own.write_text(YAML)
    with pytest.raises(InputError, match="exists and was not generated"):
        variants.write([folder])
    assert own.read_text() == YAML


@pytest.mark.parametrize("spec", sorted(PROJECT.rglob("component.yaml")), ids=lambda spec: spec.parent.name)
def test_the_text_of_a_spec_is_that_spec(spec: Path) -> None:
    content = yaml.safe_load(spec.read_text())
    assert yaml.safe_load(spec_text(content)) == content
    script = {"command": "set -e\npython a.py --x\n  indented"}
    assert yaml.safe_load(spec_text(script)) == script


def test_the_project_s_variants_are_up_to_date() -> None:
    """Where they are not: allranks components --write-variants"""
    assert list(variants.check(sorted(PROJECT.rglob("component.yaml")))) == []
