"""Dry runs without Azure: compared with what was last seen of the workspace, and they say so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import call_command, quick
from fake.service import FakeAzure
from test_schedules import project

from allranks_command import Ended, write

__all__ = ["project", "quick"]

SAID = re.compile(r"compared with the state of \d{4}-\d\d-\d\d \d\d:\d\d; Azure was not contacted")

# Each compiles pipelines or components several times.
pytestmark = pytest.mark.slow


class Commands:
    """Runs the command in the project, and tells whether it has contacted Azure."""

    def __init__(
        self, azure: FakeAzure, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.azure, self.folder, self._monkeypatch, self._capfd = azure, folder, monkeypatch, capfd

    def __call__(self, *words: str, contacts: bool) -> Ended:
        self.azure.clear()
        sign_ins = len(self.azure.sign_ins)
        done = call_command(words, self.azure, self._monkeypatch, self._capfd)
        assert bool(self.azure.requests or len(self.azure.sign_ins) > sign_ins) is contacts
        return done


@pytest.fixture
def command(
    azure: FakeAzure, project: Path, quick: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Commands:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(project)
    write(project, "environments/small/environment.yaml", 'name: small\nversion: "1"\nbuild: {path: .}\n')
    write(project, "environments/small/Dockerfile", "FROM ubuntu:24.04 AS small\n")
    write(
        project,
        "components/hello/component.yaml",
        """\
        $schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
        type: command
        name: hello
        version: "1.0.0"
        display_name: Greet
        description: Greets somebody, as often as it is told.
        tags: {task: greeting}
        is_deterministic: true
        inputs:
          times: {type: integer, min: 1, max: 9, default: 3, description: How often.}
        code: .
        environment: file:../../environments/small/environment.yaml
        command: python greet.py ${{inputs.times}}
        """,
    )
    write(project, "components/hello/greet.py", "print('hello')\n")
    return Commands(azure, project, monkeypatch, capfd)


def states(done: Ended) -> dict[str, str]:
    assert done.code == 0, done.err
    return {row["name"]: row["state"] for row in done.json["assets"]}


def test_schedules_without_any_known_state_are_all_new(command: Commands) -> None:
    done = command("schedules", "apply", "--dry-run", "--offline", contacts=False)
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if not line.startswith(" ")] == [
        "monthly: would create",
        "nightly: would create",
        "no schedules of this workspace are known; Azure was not contacted, and everything would be new",
    ]


def test_schedules_are_compared_with_those_that_were_applied(command: Commands) -> None:
    assert command("schedules", "apply", contacts=True).code == 0
    same = command("schedules", "apply", "--dry-run", "--offline", contacts=False).out.splitlines()
    assert same[:2] == ["monthly: unchanged", "nightly: unchanged"]
    assert SAID.fullmatch(same[2])
    file = command.folder / "pipelines/saying.py"
    file.write_text(file.read_text().replace('"30 2 * * *"', '"45 2 * * *"'))
    changed = command("schedules", "apply", "--dry-run", "--offline", contacts=False).out
    assert "nightly: would update\n  trigger: cron 30 2 * * *" in changed
    as_json = command("schedules", "apply", "--dry-run", "--offline", "--json", contacts=False)
    assert [change["action"] for change in as_json.json] == ["unchanged", "update"]
    assert SAID.fullmatch(as_json.err.strip())


def test_the_known_state_follows_what_is_switched_and_deleted(command: Commands) -> None:
    command("schedules", "apply", contacts=True)
    command("schedules", "disable", "nightly", contacts=True)
    command("schedules", "delete", "monthly", contacts=True)
    done = command("schedules", "apply", "--dry-run", "--offline", contacts=False)
    assert done.out.splitlines()[0] == "monthly: would create"
    assert "nightly: unchanged" in done.out


def test_registered_assets_are_compared_with_those_that_were_seen(command: Commands) -> None:
    offline = ("register", "--dry-run", "--offline", "--json")
    first = command(*offline, contacts=False)
    assert states(first) == {"small": "new", "hello": "new"}
    assert "everything would be new" in first.json["comparison"]
    assert states(command("register", "--json", contacts=True)) == {"small": "registered", "hello": "registered"}
    again = command(*offline, contacts=False)
    assert states(again) == {"small": "there", "hello": "there"}
    assert SAID.fullmatch(again.json["comparison"])
    write(command.folder, "components/hello/greet.py", "print('hi')\n")
    known = command(*offline, contacts=False).json["assets"]
    seen = command("register", "--dry-run", "--json", contacts=True).json
    assert seen["comparison"] is None
    # What is known of an asset gives the same differences as the asset itself.
    assert known == seen["assets"]
    assert known[1]["files"] == [{"name": "code/greet.py", "change": "changed"}]
    assert SAID.search(command("register", "--dry-run", "--offline", contacts=False).out)


def test_a_dry_run_without_a_network_uses_the_known_state(command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    from allranks.azure import register
    from allranks.azure.errors import UnreachableError
    from allranks.errors import Problem

    command("register", contacts=True)

    def fail(*_: object) -> None:
        raise UnreachableError(Problem("asking", "Azure cannot be reached: no route"))

    monkeypatch.setattr(register.ServiceRegistry, "version", fail)
    monkeypatch.setattr("allranks.azure.workspace.connect", lambda _: None)
    done = command("register", "--dry-run", contacts=False)
    assert (done.code, "0 would be registered, 2 unchanged" in done.out) == (0, True)
    assert "Azure cannot be reached: no route; compared with the state of" in done.out


def test_the_state_is_private_and_belongs_to_its_workspace(command: Commands) -> None:
    command("schedules", "apply", contacts=True)
    (file,) = (command.folder / ".allranks/azure").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    other = command("schedules", "apply", "--dry-run", "--offline", "--workspace", "other", contacts=False)
    assert "no schedules of this workspace are known" in other.out
    file.write_text("{")
    assert "no schedules" in command("schedules", "apply", "--dry-run", "--offline", contacts=False).out
    file.write_text(json.dumps({"version": 1, "where": json.dumps(None), "schedules": {}, "assets": {}, "listed": 0}))
    assert "no schedules" in command("schedules", "apply", "--dry-run", "--offline", contacts=False).out


@pytest.mark.parametrize("words", [["register"], ["schedules", "apply"]])
def test_only_a_dry_run_is_offline(command: Commands, words: list[str]) -> None:
    done = command(*words, "--offline", contacts=False)
    assert (done.code, "add --dry-run" in done.err) == (2, True)
