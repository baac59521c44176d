"""`allranks check --names`, and a run by the file that it helped to write."""

from pathlib import Path

import pytest

from allranks_command import called
from pipeline_files import write

pytestmark = pytest.mark.slow

SPEC = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: count
version: 2.1.0
inputs: {table: {type: uri_file}}
outputs: {lines: {type: uri_folder}}
environment: azureml:counting:1
command: wc -l < ${{inputs.table}} | tee ${{outputs.lines}}/count
"""

PIPELINE = """\
type: pipeline
inputs: {table: {type: uri_file, path: "azureml://datastores/blob/paths/raw/x.csv"}}
jobs:
  count:
    type: command
    component: azureml://registries/azureml/components/count/labels/latest
    inputs: {table: "${{parent.inputs.table}}"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "pipeline.yml", PIPELINE)
    write(tmp_path, "registry/count/spec.yaml", SPEC)
    write(tmp_path, "blob/raw/x.csv", "1\n2\n3\n")
    return tmp_path


def test_from_a_pipeline_to_its_file_to_its_run(project: Path) -> None:
    file = project / "allranks.yaml"
    printed = called("check", "pipeline.yml", "--names", folder=project)
    assert (printed.code, printed.err) == (0, "")
    assert not file.exists()
    # The user completes the lines.
    text = printed.out.replace(
        "# registries/azureml/components/count/labels/latest: path/to/component.yaml", "registries/azureml/*: registry"
    )
    file.write_text(text.replace("# blob: path/to/folder", "blob: blob"))
    # The component's own environment is known only now; no virtual environment is needed for a run.
    rest = called("check", "pipeline.yml", "--names", folder=project)
    assert rest.out.splitlines()[-1] == "  # counting:1: .venvs/NAME"
    done = called("run", "pipeline.yml", "--instances", "loopback", "--no-track", folder=project)
    assert done.code == 0, done.err
    (counted,) = (path for path in (project / ".allranks/runs").rglob("count") if path.is_file())
    assert counted.read_text().strip() == "3"
    write(project, ".venvs/counting/bin/python", "").chmod(0o755)
    nothing = called("check", "pipeline.yml", "--names", folder=project)
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "this machine can resolve every name in pipeline.yml\n")


def test_a_run_without_the_file_says_what_to_add(project: Path) -> None:
    done = called("run", "pipeline.yml", folder=project)
    assert (done.code, done.out) == (2, "")
    assert "add to allranks.yaml:\n            datastores:\n              blob: path/to/folder\n" in done.err
    assert not (project / ".allranks").exists()


def test_other_mistakes_are_left_to_check(project: Path) -> None:
    more = "  b: {command: ls, environment: azureml:counting:1, resources: {shm_size: much}}\n"
    write(project, "pipeline.yml", PIPELINE + more)
    done = called("check", "pipeline.yml", "--names", folder=project)
    assert done.code == 0
    assert done.err == "1 other problem: allranks check pipeline.yml\n"


def test_names_of_one_file_at_a_time(project: Path) -> None:
    done = called("check", "pipeline.yml", "--names", "more.yml", folder=project)
    assert (done.code, "2 files are given" in done.err) == (2, True)
