"""The steps of a plan get the interpreters of their environments; what differs is a warning."""

import json
import sys
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.images import cache
from allranks.local import environments, interpreters
from allranks.plan.environment import Environment
from allranks.plan.graph import Graph, Pipeline, Plan, Step
from allranks.plan.walk import steps


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def defined(name: str, *packages: str, realised: str = "") -> Environment:
    definition = json.dumps({"dependencies": ["git", {"pip": list(packages)}]})
    return Environment(name, conda=name, definition=definition, file="conda.yml", realised=realised)


def plan_of(**named: Environment) -> Plan:
    nodes = tuple(Step(name, "true", environment=environment) for name, environment in named.items())
    return Plan("p", Graph((*nodes[1:], Pipeline("group", Graph(nodes[:1])))), source=str(Path.cwd() / "p.py"))


def ways(plan: Plan) -> dict[str, str]:
    return {path: step.environment.realised for path, step in steps(plan.graph)}


def test_each_environment_is_made_once_and_its_steps_name_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def make(folder: Path, *_: object) -> None:
        made.append(folder)
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / cache.COMPLETE).touch()

    monkeypatch.setattr(cache, "make", make)
    first = defined("one", "six==0.1")
    plan = plan_of(a=first, b=first, c=defined("two", "six==0.2"), d=defined("two", realised="host"), e=Environment())
    changed, warnings = environments.with_interpreters(plan, "venv")
    assert ways(changed) == {"b": "venv", "c": "venv", "d": "host", "e": "", "group.a": "venv"}
    assert len(made) == 2
    found = {path: step.environment.interpreter for path, step in steps(changed.graph)}
    one, two = (f"{folder}/bin/python" for folder in made)
    assert found == {"b": one, "group.a": one, "c": two, "d": "", "e": ""}
    assert [warning.where for warning in warnings] == ["environment one of b, group.a", "environment two of c"]
    assert environments.used_option(changed) == "venv"
    # As a rerun: what was removed is made again, whatever the option is now.
    (made[0] / cache.COMPLETE).unlink()
    again, _ = environments.with_interpreters(changed, "host")
    assert (again, made[2:]) == (changed, made[:1])


def test_a_command_that_installs_packages_does_not_share_its_environment() -> None:
    commands = ("true", "echo pip", "pip install six && true", "python -m pip install six")
    nodes = tuple(
        Step(f"s{number}", command, environment=defined("one", "six==0.1")) for number, command in enumerate(commands)
    )
    changed, _ = environments.with_interpreters(Plan("p", Graph(nodes), source="p.py"), "venv", makes=False)
    first, *others = (step.environment.interpreter for _, step in steps(changed.graph))
    assert others[0] == first
    assert len({first, *others}) == 3


def test_a_host_plan_is_unchanged_and_silent() -> None:
    plan = plan_of(a=defined("one", "no-such-package"))
    assert environments.with_interpreters(plan, "host") == (plan, [])


def test_what_the_user_has_made_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / ".venvs/one/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    mapped = Environment("two", interpreter="/mapped/bin/python")
    plan = plan_of(a=defined("one", "six==0.1"), b=mapped)
    assert environments.with_interpreters(plan, "venv") == (plan, [])
    assert interpreters.find(plan.graph.nodes[0].environment, plan.source) == Path("/mapped/bin/python")  # type: ignore[union-attr]


def test_every_environment_that_cannot_be_realised_is_named() -> None:
    broken = Environment("broken", definition='{"dependencies": 3}', file="c.yml")
    no_conda = Environment("image", image="python:3.11", realised="conda")
    with pytest.raises(InputError) as raised:
        environments.with_interpreters(plan_of(a=broken, b=no_conda), "venv")
    assert [problem.found for problem in raised.value.problems] == ["it has no conda file", "dependencies 3"]


@pytest.mark.parametrize(("version", "runs"), [("3.9.18", False), ("3.10.1", True), ("3.13.0", True), ("", True)])
def test_old_versions_of_python_start_without_a_fork_server(tmp_path: Path, version: str, runs: bool) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").write_text(f"version_info = {version}\n")
    assert interpreters.runs_fork_server(tmp_path / "bin/python") is runs
    assert interpreters.runs_fork_server(Path(sys.executable))
