"""`allranks rerun`, `resume --latest-code`, `--from`, `--only` and `--until`, through the command."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from allranks_command import Ended, called

COMPONENT = {
    "type": "command",
    "command": "echo ${{inputs.text}} > ${{outputs.out}}/text",
    "environment": "azureml:any@latest",
    "inputs": {"text": {"type": "string"}},
    "outputs": {"out": {"type": "uri_folder"}},
}
PIPELINE: dict[str, Any] = {
    "type": "pipeline",
    "inputs": {"text": "a", "hf_token": "none"},
    "jobs": {
        "first": {**COMPONENT, "component": "", "inputs": {"text": "${{parent.inputs.text}}"}},
        "second": {
            "type": "command",
            "command": "cat ${{inputs.data}}/text; test $TOKEN != wrong",
            "environment": "azureml:any@latest",
            "environment_variables": {"TOKEN": "${{parent.inputs.hf_token}}"},
            "inputs": {"data": "${{parent.jobs.first.outputs.out}}", "note": "${{parent.name}}"},
        },
    },
}
del PIPELINE["jobs"]["first"]["component"]
WARNING = "${{parent.name}} is not a binding"


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    file = tmp_path / "pipeline.yml"
    file.write_text(yaml.safe_dump(PIPELINE))
    return file


def command(pipeline: Path, *arguments: str, ends: int = 0) -> Ended:
    instances = [] if "--dry-run" in arguments else ["--instances", "loopback", "--no-track"]
    ended = called(*arguments, *instances, folder=pipeline.parent)
    assert ended.code == ends, ended.out + ended.err
    return ended


def states(ended: Ended) -> dict[str, str]:
    steps = ended.json["steps"]
    return {step["name"]: "reused" if step["reused_from"] else step["status"] for step in steps}


def test_edit_and_retry(pipeline: Path) -> None:
    failed = command(pipeline, "run", "pipeline.yml", "--set", "hf_token=wrong", "--set", "text=b", ends=1)
    assert "resume with the same code    allranks resume " in failed.out
    assert "resume with the latest code  allranks resume " in failed.out
    fixed = {**PIPELINE["jobs"]["second"], "command": "cat ${{inputs.data}}/text; echo fixed"}
    pipeline.write_text(yaml.safe_dump(PIPELINE | {"jobs": {**PIPELINE["jobs"], "second": fixed}}))
    resumed = command(pipeline, "resume", "latest", ends=1)
    assert WARNING in failed.err
    assert WARNING in resumed.err
    resumed = command(pipeline, "resume", "latest", "--latest-code", "--json")
    assert states(resumed) == {"first": "Completed", "second": "Completed"}
    assert resumed.json["settings"] == {"text": "b", "hf_token": "***"}
    log = Path(resumed.json["steps"][1]["ranks"][0]["log"]).read_text()
    assert log == "b\nfixed\n"

    done = command(pipeline, "resume", "latest", "--latest-code", ends=2)
    assert "allranks rerun" in done.err
    again = command(pipeline, "rerun", "latest", "--from", "second", "--json", "--set", "text=c", ends=2)
    assert "are gone: hf_token" in again.err
    again = command(pipeline, "rerun", "latest", "--set", "hf_token=other", "--json")
    assert WARNING in again.err
    assert states(again) == {"first": "reused", "second": "Completed"}
    again = command(
        pipeline,
        "rerun",
        "latest",
        "--latest-code",
        "--from",
        "second",
        "--json",
        "--set",
        "hf_token=x",
        "--set",
        "text=c",
    )
    assert states(again) == {"first": "reused", "second": "Completed"}


def test_one_step_of_a_failed_run_fails_again(pipeline: Path) -> None:
    failed = command(pipeline, "run", "pipeline.yml", "--set", "hf_token=wrong", "--set", "text=b", "--json", ends=1)
    other = command(pipeline, "run", "pipeline.yml", "--until", "first", "--force-rerun", "--json")
    again = command(pipeline, "rerun", failed.json["id"], "--only", "second", "--json", ends=1)
    assert states(again) == {"first": "reused", "second": "Failed"}
    assert again.json["steps"][0]["reused_from"] == failed.json["id"] != other.json["id"]
    assert Path(again.json["steps"][1]["ranks"][0]["log"]).read_text() == "b\n"


def test_selected_steps(pipeline: Path) -> None:
    inputs = ("--set", "text=new", "--set", "hf_token=none", "--json")
    first = command(pipeline, "run", "pipeline.yml", *inputs, "--until", "first")
    assert states(first) == {"first": "Completed", "second": "NotStarted"}
    assert Path(first.json["steps"][0]["outputs"][0]["path"], "text").read_text() == "new\n"
    only = command(pipeline, "run", "pipeline.yml", *inputs, "--only", "second")
    assert states(only) == {"first": "reused", "second": "Completed"}
    changed = command(pipeline, "rerun", "latest", "--set", "text=d", "--set", "hf_token=x", "--json")
    assert states(changed) == {"first": "Completed", "second": "Completed"}
    assert changed.json["inputs"]["text"] == "d"
    dry = command(pipeline, "run", "pipeline.yml", "--from", "second", "--dry-run")
    assert "reuse an earlier result  first" in dry.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "pipeline.yml", "--until", "secnd"], "did you mean --until second?"),
        (["run", "pipeline.yml", "--only", "first", "--from", "second"], "remove one of the options"),
        (["rerun", "latest"], "there is no workspace"),
        (["resume", "latest", "--set", "text=b"], "--latest-code"),
    ],
)
def test_wrong_input(pipeline: Path, arguments: list[str], message: str) -> None:
    assert message in command(pipeline, *arguments, ends=2).err
