"""The hook, the action and the pipelines of docs/how-to/check-in-ci.md, in a repository with a job."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from sarif_kit.validate import assert_valid

from allranks import __version__
from allranks_command import environment, write
from documents import DOCS, FENCE

ROOT = DOCS.parent
PAGE = (DOCS / "how-to/check-in-ci.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(code) for language, code in FENCE.findall(PAGE) if language == "yaml"]
JOB = "command: echo\nenvironment: azureml:cpu:1\n"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("check in ci")]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write(tmp_path, "pipelines/right.yml", JOB)
    run("git init -q && git add .", tmp_path)
    return tmp_path


def run(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as CI services do, with the programs of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = environment(PATH=path, HOME=str(folder.parent), **variables)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False)


def break_job(repository: Path) -> None:
    write(repository, "pipelines/wrong folder.yml", JOB + "computte: gpu\n")
    run("git add .", repository)


def test_the_page_names_this_version() -> None:
    versions = re.findall(r"allranks/allranks@(\S+)|rev: (\S+)", PAGE)
    assert {"".join(each) for each in versions} == {f"v{__version__}"}


def test_the_hook(repository: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (
        run(f"{sys.executable} -m pre_commit validate-manifest {ROOT}/.pre-commit-hooks.yaml", repository).returncode
        == 0
    )
    (used,) = next(block["repos"][0]["hooks"] for block in BLOCKS if "repos" in block)
    # In place of the language python, which would install allranks.
    local = {"repo": "local", "hooks": [hook | {"language": "system"} | used]}
    write(repository, ".pre-commit-config.yaml", yaml.safe_dump({"repos": [local]}))
    commit = f"{sys.executable} -m pre_commit run --all-files"
    done = run(commit, repository)
    assert done.returncode == 0, done.stdout
    break_job(repository)
    done = run(commit, repository)
    assert done.returncode == 1
    assert "did you mean compute?" in done.stdout


def steps(**given: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the command and the variables of each step of the action, by name. given: its inputs"""
    values = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()} | given
    assert values.keys() == ACTION["inputs"].keys()

    def evaluated(text: str) -> str:
        return re.sub(r"\${{ inputs\.(\w+) }}", lambda match: values[match[1]], text)

    return {
        step["name"]: (step["run"], {name: evaluated(value) for name, value in step.get("env", {}).items()})
        for step in ACTION["runs"]["steps"]
    }


def test_the_action(repository: Path) -> None:
    break_job(repository)
    used = [step for block in BLOCKS for step in block.get("steps", ()) if "allranks/allranks@" in step.get("uses", "")]
    annotating, scanning = (step["with"] for step in used)
    command, variables = steps(**annotating)["Check"]
    done = run(command, repository, **variables)
    assert done.returncode == 2
    assert done.stdout.startswith("::error file=pipelines/wrong folder.yml,line=3,title=unknown-key::")
    files = "pipelines/wrong folder.yml\npipelines/right.yml"
    command, variables = steps(**scanning, files=files, strict="true")["Check"]
    done = run(command, repository, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean compute?" in done.stderr
    log = json.loads((repository / scanning["report"]).read_text())
    assert_valid(log)
    assert "unknown-key" in [result["ruleId"] for result in log["runs"][0]["results"]]


@pytest.mark.recipe
def test_the_action_installs_the_allranks_beside_it(repository: Path) -> None:
    command, _ = steps()["Install allranks"]
    # Read what it would install, without a network.
    offline = {"PIP_DRY_RUN": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    done = run(command, repository, GITHUB_ACTION_PATH=str(ROOT), **offline)
    assert f"Would install allranks-{__version__}" in done.stdout, done.stderr


def test_the_azure_pipeline(repository: Path) -> None:
    (pipeline,) = (block for block in BLOCKS if "task" in block.get("steps", [{}])[0])
    write(repository, "azure-pipelines.yml", yaml.safe_dump(pipeline))
    schema = "check-jsonschema --builtin-schema vendor.azure-pipelines azure-pipelines.yml"
    assert run(schema, repository).returncode == 0
    commands = [step["script"] for step in pipeline["steps"] if "script" in step]
    assert commands[0].startswith("pip install ")
    assert run(commands[1], repository).returncode == 0
    (case,) = ElementTree.parse(repository / "allranks.xml").iter("testcase")
    assert case.attrib["file"] == "pipelines/right.yml"
