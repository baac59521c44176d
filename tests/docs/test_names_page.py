"""The example in docs/reference/names.md says and does what it shows."""

import os
import re
import sys
from pathlib import Path

import pytest

from allranks.local import interpreters
from allranks.plan.ports import Path as DataPath
from allranks_command import called
from pipeline_files import read, write

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/names.md").read_text(encoding="utf-8")
FILES = {name: text for text, name in re.findall(r"^```yaml\n(# (\S+)\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)}
(SHOWN,) = re.findall(r"^```\n\$ allranks (.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

SPEC = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: count_rows
version: 1.0.0
inputs: {table: {type: uri_file}}
environment: azureml://registries/azureml/environments/counting/versions/4
command: wc -l ${{inputs.table}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "pipeline.yml", FILES["pipeline.yml"])
    write(tmp_path, "specs/deep/count_rows/spec.yaml", SPEC)
    write(tmp_path, "data/titanic/train.csv", "1\n")
    (tmp_path / ".venvs/counting/bin").mkdir(parents=True)
    os.symlink(sys.executable, tmp_path / ".venvs/counting/bin/python")
    return tmp_path


def test_what_the_command_prints(project: Path) -> None:
    arguments, _, printed = SHOWN.partition("\n")
    assert called(*arguments.split(), folder=project).out == printed


def test_the_completed_file_holds(project: Path) -> None:
    write(project, "allranks.yaml", FILES["allranks.yaml"])
    plan = read("pipeline.yml")
    assert plan.graph.inputs[0].value == DataPath(str(project / "data/titanic/train.csv"))
    assert plan.graph.nodes[0].spec == str(project / "specs/deep/count_rows/spec.yaml")
    assert interpreters.find(plan.graph.nodes[0].environment, plan.source) == project / ".venvs/counting/bin/python"
