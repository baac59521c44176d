"""The page about public specs: its script finds what is in a checkout, and its rules are ours."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from allranks.components.check import rules as component_rules
from allranks.plan import check as plan_check
from allranks.plan.check import only_here
from allranks.plan.check.rule import Level
from component_projects import YAML, make

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| (error|warning|advice|this machine) \| `([a-z-]+)` \| (\d+) \| (\d+) \|$", re.MULTILINE)
FIXTURE = "type: pipeline\njobs: {a: {command: echo, environment: azureml:x:1}}\n"


@pytest.fixture(scope="module")
def text() -> str:
    return (DOCS / "public-specs.md").read_text(encoding="utf-8")


def test_its_rules_and_levels_are_those_of_the_tables(text: str) -> None:
    levels = {rule.code: rule.level.value for rule in (*component_rules.CATALOGUE, *plan_check.CATALOGUE)}
    levels |= dict.fromkeys((*only_here.CODES, "missing-package"), Level.MACHINE.value)
    rows = ROW.findall(text)
    assert len(rows) > 20
    assert [(level, rule) for level, rule, *_ in rows if levels.get(rule) != level] == []


def test_nothing_that_azure_ml_runs_has_an_error(text: str) -> None:
    files = re.findall(r"^\| Azure/\S+ \| `[0-9a-f]{40}` \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert sum(map(int, (number for row in files for number in row))) >= 226
    rows = [line for line in text.partition("## Errors")[2].splitlines() if line.startswith("| azureml-")]
    assert len(rows) == sum(int(count) for level, _, _, count in ROW.findall(text) if level == "error")
    assert [row for row in rows if not row.endswith("| yes |") and "| `binding` |" not in row] == []


def test_the_script_on_a_small_checkout(tmp_path: Path) -> None:
    root = tmp_path / "azureml-assets"
    good, bad = make(root), root / "components/bad"
    bad.mkdir()
    (bad / "component.yaml").write_text(YAML.replace("name: greet", "name: Greet-People"))
    (root / "job.yml").write_text(FIXTURE)
    fixture = root / "test/resources/x"
    fixture.mkdir(parents=True)
    (fixture / "component.yaml").write_text(YAML)
    (root / "COMMIT").write_text(f"{'0' * 40}\n")
    page = runpy.run_path(str(DOCS / "make_findings.py"))["page"]([root])
    assert good.is_dir()
    assert f"| Azure/azureml-assets | `{'0' * 40}` | 2 | 1 |" in page
    assert "| error | `component-name` | 1 | 1 |" in page
    assert "| azureml-assets: components/bad/component.yaml | `component-name` | name 'Greet-People' | yes |" in page
