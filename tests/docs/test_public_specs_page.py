"""The page about public specs: its script finds what is in a checkout, and its rules are ours."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import Problem
from allranks.sdk import session
from component_projects import YAML, make

DOCS = Path(__file__).resolve().parents[2] / "docs"
JOB = """\
command: ls ${{{{inputs.data}}}}
environment: azureml:x:1
compute: azureml:cpu
inputs:
  data: {{type: uri_folder, path: "{}"}}
"""
FIXTURE = "type: pipeline\njobs: {a: {command: echo, environment: azureml:x:1}}\n"


@pytest.fixture(scope="module")
def text() -> str:
    return (DOCS / "reports/public-specs.md").read_text(encoding="utf-8")


def test_the_script_on_a_small_checkout(tmp_path: Path) -> None:
    root = tmp_path / "Contoso/specs"
    good, bad = make(root), root / "components/bad"
    bad.mkdir()
    (bad / "component.yaml").write_text(YAML.replace("name: greet", "name: Greet-People"))
    (root / "job.yml").write_text(FIXTURE)
    (root / "template.yml").write_text(JOB.format("/path/to/local/data"))
    (root / "unknown.yml").write_text(JOB.format("azureml://registries/x/dataassets"))
    fixture = root / "test/resources/x"
    fixture.mkdir(parents=True)
    (fixture / "component.yaml").write_text(YAML)
    (root / "COMMIT").write_text(f"{'0' * 40}\n")
    page = runpy.run_path(str(DOCS.parent / "tools" / "make_findings.py"))["page"]([root])
    assert good.is_dir()
    assert f"| Contoso/specs | `{'0' * 40}` | 2 | 3 |" in page
    assert "| error | `component-name` | 1 | 1 |" in page
    name = "| Contoso/specs: components/bad/component.yaml | `component-name` | name 'Greet-People' | loading |"
    path = "| Contoso/specs: template.yml | `data` | inputs.data: /path/to/local/data does not exist | submitting |"
    assert {name, path} <= set(errors(page))
    assert not_refused(page) == []
    assert "| Contoso/specs: unknown.yml | `asset-id` | inputs.data: azureml://registries/x/dataassets" in page


def test_an_error_that_azure_ml_does_not_have_is_found(tmp_path: Path) -> None:
    """The test above fails where a rule gives an error for a file that azure-ai-ml takes."""
    script = runpy.run_path(str(DOCS.parent / "tools" / "make_findings.py"))
    file = make(tmp_path) / "component.yaml"
    found = script["Found"](errors={file: [Problem("key inputs (x)", "wrong", rule="port-name")]})
    page = script["ERRORS"] + script["errors"](found, [tmp_path])
    row = f"| {tmp_path.parent.name}/{tmp_path.name}: {file.relative_to(tmp_path)} | `port-name` | inputs: wrong | no |"
    assert not_refused(page) == [row]


def test_inputs_are_resolved_without_a_workspace(tmp_path: Path) -> None:
    """A job as the client would upload it: what it refuses is raised, and nothing else."""
    resolve_inputs = runpy.run_path(str(DOCS.parent / "tools" / "make_findings.py"))["resolve_inputs"]

    def single(path: str) -> Any:
        data = {"data": Input(type="uri_folder", path=path), "text": "a"}
        return command(command="ls ${{inputs.data}}", environment="azureml:e:1", inputs=data)

    with session.session():
        from azure.ai.ml import Input, command, dsl

        for path in (str(tmp_path), "azureml:words:1", "azureml://registries/x/data/y/versions/1"):
            resolve_inputs(single(path))
        resolve_inputs(dsl.pipeline(lambda: single(str(tmp_path)), name="one")())
        with pytest.raises(Exception, match="There is no dir on target path"):
            resolve_inputs(single(str(tmp_path / "nope")))
        with pytest.raises(Exception, match="path can't be empty"):
            resolve_inputs(single(""))


def errors(page: str) -> list[str]:
    """The rows of the table of errors."""
    section = page.partition("## Errors")[2].partition("## Undecided")[0]
    return [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| file |")]


def not_refused(page: str) -> list[str]:
    """The rows of errors in files that azure-ai-ml takes."""
    return [row for row in errors(page) if row.split(" | ")[-1] not in ("loading |", "validating |", "submitting |")]
