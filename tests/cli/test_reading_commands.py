"""`allranks runs`, `show`, `components` and `check`, for people and for programs."""

from pathlib import Path

import pytest

from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output
from allranks.workspace import Workspace
from allranks_command import called, content, write, write_job


@pytest.fixture
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose workspace has two runs, ab000001 and then ab000002."""
    identities = iter(["ab000001", "ab000002"])
    monkeypatch.setattr("allranks.local.engine.secrets.token_hex", lambda _: next(identities))
    for word in ("first", "second"):
        step = Step("say", f"echo {word} > ${{{{outputs.said}}}}", outputs=(Output("said", "uri_file", "rw_mount"),))
        run(Plan(word, Graph((step,))), Workspace(tmp_path / ".allranks"), Options(instances="loopback"))
    return tmp_path


def test_there_may_be_no_runs_yet(tmp_path: Path) -> None:
    assert "No runs yet. Start one with: allranks run FILE" in called("runs", folder=tmp_path).out
    assert called("runs", "--json", folder=tmp_path).json == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("identity", "name"), [((), "second"), (("ab000001",), "first")])
def test_show_tells_of_the_run_that_is_asked_for(two_runs: Path, identity: tuple[str, ...], name: str) -> None:
    below = two_runs / "some" / "folder"
    below.mkdir(parents=True)
    record = called("show", *identity, "--json", folder=below).json
    assert (record["name"], record["status"], record["steps"][0]["status"]) == (name, "Completed", "Completed")
    text = called("show", *identity, folder=below).out
    assert text.startswith(f"{name}  ✓ Completed\n")
    assert record["page"] in text


@pytest.mark.parametrize(
    ("command", "identity", "said"),
    [
        ("resume", "zz", ["run zz", "no such run in"]),
        ("logs", "ab", ["run ab", "fits 2 runs", "use a longer part of the id"]),
    ],
)
def test_a_run_that_is_not_there_or_not_told_apart(
    two_runs: Path, command: str, identity: str, said: list[str]
) -> None:
    before = content(two_runs)
    done = called(command, identity, folder=two_runs)
    assert (done.code, done.out) == (2, "")
    assert not [text for text in said if text not in done.err]
    assert content(two_runs) == before


@pytest.mark.parametrize("command", ["show", "logs", "resume"])
def test_there_may_be_no_workspace(tmp_path: Path, command: str) -> None:
    done = called(command, "latest", "--folder", "typo", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "there is no workspace in" in done.err
    assert "--folder DIR" in done.err
    assert not list(tmp_path.iterdir())


def test_components(tmp_path: Path) -> None:
    write(
        tmp_path,
        "components/say/component.yaml",
        """\
        name: say
        version: 1.0.0
        description: Says it.
        type: command
        inputs: {times: {type: integer, min: 1, max: 3, default: 2, description: How often.}}
        command: echo ${{inputs.times}}
        environment: azureml:cpu:1
        distribution: {type: pytorch, process_count_per_instance: 2}
        """,
    )
    (component,) = called("components", "--json", folder=tmp_path / "components").json
    assert (component["name"], component["version"], component["description"]) == ("say", "1.0.0", "Says it.")
    assert (component["distribution"], component["process_count_per_instance"]) == ("pytorch", 2)
    (port,) = component["inputs"]
    assert (port["minimum"], port["maximum"], port["default"], port["description"]) == (1, 3, 2, "How often.")


def test_components_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = called("components", "no/where", "--json", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "no such folder" in done.err


def test_check_tells_everything_that_is_wrong(tmp_path: Path) -> None:
    write_job(
        tmp_path,
        "cat ${{inputs.data}} ${{inputs.other}}",
        "wrong.yml",
        inputs={"data": {"type": "uri_file", "path": "./gone.csv"}},
        distribution={"type": "pytorch", "process_count_per_instance": 0},
    )
    told = called("check", "wrong.yml", folder=tmp_path)
    assert (told.code, told.out) == (2, "")
    assert told.err.splitlines()[-1].endswith(" problems; nothing was started.")
    found = called("check", "wrong.yml", "--json", folder=tmp_path)
    assert (found.code, found.err) == (2, "")
    problems = found.json["problems"]
    assert len(problems) >= 3
    for problem in problems:
        assert set(problem) == {"where", "found", "expected", "fix", "code", "rule", "level", "ignorable"}
        assert problem["where"] in told.err
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.yml"]
