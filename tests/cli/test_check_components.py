"""`allranks check` of components, and of a pipeline that uses components from files."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allranks.cli.main import app
from allranks.errors import InputError
from allranks.sdk.spec_files import Kind, kind
from component_projects import PYTHON, YAML, make

PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
settings: {default_compute: azureml:gpu}
jobs:
  greet:
    type: command
    component: ../components/greet/component.yaml
    inputs:
      people: {type: uri_file, path: people.txt}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make(tmp_path)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/people.txt").write_text("Ada\n")
    (tmp_path / "pipelines/pipeline.yaml").write_text(PIPELINE)
    return tmp_path


def spoil(project: Path) -> Path:
    spec = project / "components/greet/component.yaml"
    spec.write_text(YAML.replace("default: warm", "default: hot"))
    return spec


@pytest.mark.parametrize("what", ["components", "components/greet", "components/greet/component.yaml"])
def test_a_component_by_its_file_its_folder_or_with_all_others(project: Path, what: str) -> None:
    good = CliRunner().invoke(app, ["check", str(project / what)])
    assert good.exit_code == 0
    assert "no problems" in good.stdout
    spec = spoil(project)
    bad = CliRunner().invoke(app, ["check", str(project / what)])
    assert isinstance(bad.exception, InputError)
    assert bad.exception.problems[0].where == f"{spec}:27"


def test_a_folder_without_specs(project: Path) -> None:
    (project / "src").mkdir()
    (project / "src/train.py").write_text("raise SystemExit('imported')\n")
    (project / "src/environment.yaml").write_text("name: cpu\nversion: '1'\nimage: ubuntu\n")
    done = CliRunner().invoke(app, ["check", str(project / "src")])
    assert "no component, no job and no pipeline" in str(done.exception)


def test_a_folder_is_checked_at_any_depth_by_what_its_files_say(project: Path) -> None:
    hello = "type: command\ncommand: echo\nenvironment: azureml:cpu:1\n"
    files = {
        "jobs/2024/hello.yml": hello,
        ".github/workflows/ci.yml": "on: push\njobs: {test: {runs-on: x, steps: []}}\n",
        "workflow.yml": "on: push\njobs: {test: {runs-on: x, steps: []}}\n",
        ".venv/lib/job.yml": "type: command\ncommand: [\n",
        "python/pyvenv.cfg": "",
        "python/job.yml": "type: command\ncommand: [\n",
        "node_modules/job.yml": "type: command\ncommand: [\n",
        "chart/templated.yaml": "type: {{ .Values.type }}\n",
    }
    shutil.copytree(project / "components/greet", project / "deep/er")
    (project / "deep/er/component.yaml").unlink()
    files["deep/er/other.yml"] = YAML.replace("greet\n", "other\n").replace("Greet people", "Greet others")
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    done = CliRunner().invoke(app, ["check", str(project)])
    assert done.stdout.replace("\n", "").endswith(": 2 components, 2 jobs, no problems"), done.exception
    (project / "jobs/2024/hello.yml").write_text(hello.replace("command: echo", "comand: echo"))
    done = CliRunner().invoke(app, ["check", str(project), "--json"])
    where = [problem["where"] for problem in json.loads(done.stdout)["problems"]]
    assert where == [f"key comand ({project / 'jobs/2024/hello.yml'}:2)"]


PIPELINES = """\
from azure.ai.ml import Input, command, dsl

say = command(name="say", display_name="Say", command="echo ${{inputs.word}}", environment="azureml:cpu:1",
              inputs={"word": Input(type="string")})

@dsl.pipeline()
def part(word: str):
    say(word=word)

@dsl.pipeline()
def one(word: str = "one"):
    part(word=word)

@dsl.pipeline()
def two(*, word: str = "two"):
    say(word=word)
"""


def test_a_folder_with_pipelines_in_python(project: Path) -> None:
    (project / "pipelines/several.py").write_text(PIPELINES)
    (project / "pipelines/helper.py").write_text("raise SystemExit('this has no pipeline and is not imported')\n")
    done = CliRunner().invoke(app, ["check", str(project)])
    assert done.stdout.replace("\n", "").endswith(": 1 component, 1 job, 2 pipelines, no problems"), done.exception
    (project / "pipelines/several.py").write_text(PIPELINES.replace("    say(word=word)", "    say(words=word)"))
    done = CliRunner().invoke(app, ["check", str(project), "--json"])
    assert done.exit_code == 2
    found = [problem["where"] for problem in json.loads(done.stdout)["problems"]]
    assert found
    assert all("several.py" in where for where in found), found


def test_a_pipeline_runs_with_components_that_have_warnings_and_says_so(project: Path) -> None:
    pipeline = str(project / "pipelines/pipeline.yaml")
    done = CliRunner().invoke(app, ["check", pipeline, "--json"])
    assert (done.exit_code, json.loads(done.stdout)["warnings"]) == (0, [])
    spec = project / "components/greet/component.yaml"
    spec.write_text(YAML.replace("outputs:", 'environment_variables:\n  TONE: "1"\noutputs:'))
    done = CliRunner().invoke(app, ["check", pipeline, "--json"])
    (warning,) = json.loads(done.stdout)["warnings"]
    assert done.exit_code == 0
    assert "TONE" in warning["found"]


def test_advice_is_counted_and_strict_lists_it(project: Path) -> None:
    spec = project / "components/greet/component.yaml"
    spec.write_text(YAML.replace("    description: Names, one a line.\n", ""))
    for what in ("components", "pipelines/pipeline.yaml"):
        path = str(project / what)
        done = CliRunner().invoke(app, ["check", path])
        assert done.exit_code == 0
        assert done.stdout.replace("\n", "").endswith("no problems, advice: 1 (--strict lists it)")
        (advice,) = json.loads(CliRunner().invoke(app, ["check", path, "--json"]).stdout)["advice"]
        assert "people has no description" in advice["found"]
        strict = CliRunner().invoke(app, ["check", "--strict", path])
        assert isinstance(strict.exception, InputError)
        (problem,) = strict.exception.problems
        assert Path(problem.where.removesuffix(":11")).samefile(spec)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("component.yaml", YAML, True),
        ("greet.yml", YAML, True),
        ("greet.yaml", "type: command\nversion: '1'\ncommand: echo\n", True),
        ("train.yml", "type: command\ncommand: echo\ninputs: {lr: {type: number}}\n", True),
        ("job.yaml", "type: command\ncommand: echo\ninputs: {lr: 0.1, data: {type: uri_file, path: f}}\n", False),
        ("job.yaml", "type: command\ncommand: echo\nenvironment: azureml:cpu:1\n", False),
        ("pipeline.yaml", PIPELINE, False),
        ("deployment.yml", "$schema: https://x/pipelineComponentBatchDeployment.schema.json\ntype: pipeline\n", False),
        ("component.py", PYTHON, True),
        ("pipeline.py", f"from azure.ai.ml import dsl\n{PYTHON}\n@dsl.pipeline()\ndef all_of_it(): ...\n", False),
        ("train.py", "print(1)", False),
        ("broken.py", "def (", False),
    ],
)
def test_what_is_a_component(tmp_path: Path, name: str, text: str, expected: bool) -> None:
    (tmp_path / name).write_text(text)
    assert (kind(tmp_path / name) is Kind.COMPONENT) is expected


def test_what_only_this_machine_lacks_is_no_error(tmp_path: Path) -> None:
    """A module that a component imports, and a component of a registry."""
    (tmp_path / "component.py").write_text(f"import surely_not_installed\n{PYTHON}")
    job = tmp_path / "job.yml"
    component = "azureml://registries/azureml/components/compute_metrics/labels/latest"
    job.write_text(f"type: pipeline\njobs:\n  score:\n    type: command\n    component: {component}\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    checked = json.loads(done.stdout)
    assert checked["problems"] == []
    assert [problem["rule"] for problem in checked["machine"]] == ["module-missing", ""]
    assert "surely_not_installed" in checked["machine"][0]["found"]
    assert component in checked["machine"][1]["found"]
    assert "cannot run on this machine" in CliRunner().invoke(app, ["check", str(job)]).stdout
