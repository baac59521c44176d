"""`allranks register` through the real client: what is new goes there, what is there stays, what was torn goes on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import small_runtime
from fake.service import FakeAzure
from typer.testing import CliRunner

from allranks.azure.errors import AzureError
from allranks.cli.main import app
from allranks.errors import InputError

PROJECT = Path(__file__).parents[2]

COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: {name}
version: "1.0.0"
display_name: Greet {name}
description: Greets somebody, as often as it is told.
tags: {{task: greeting}}
is_deterministic: true
inputs:
  times: {{type: integer, min: 1, max: 9, default: 3, description: How often.}}
outputs:
  said: {{type: uri_folder, description: What was said.}}
code: .
environment: file:../../environments/small/environment.yaml
command: python greet.py ${{{{inputs.times}}}} ${{{{outputs.said}}}}
"""
ENVIRONMENT = 'name: small\nversion: "1"\nbuild: {path: .}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two components with one environment, in the current folder."""
    folder = tmp_path / "project"
    (folder / "environments/small").mkdir(parents=True)
    (folder / "environments/small/environment.yaml").write_text(ENVIRONMENT)
    (folder / "environments/small/Dockerfile").write_text("FROM ubuntu:24.04 AS small\n")
    for name in ("hello", "goodbye"):
        place = folder / "components" / name
        place.mkdir(parents=True)
        (place / "component.yaml").write_text(COMPONENT.format(name=name))
        (place / "greet.py").write_text(f"print({name!r})\n")
    monkeypatch.chdir(folder)
    return folder


def ran(*arguments: str) -> Any:
    """What the command gives as JSON; raises what it raises."""
    done = CliRunner().invoke(app, [*arguments, "--json"])
    if done.exception:
        raise done.exception
    return json.loads(done.stdout)


def states(found: Any) -> dict[str, str]:
    return {row["name"]: row["state"] for row in found["assets"]}


def uploads(azure: FakeAzure) -> list[str]:
    return [path for method, path, _ in azure.requests if method in ("PUT", "POST", "PATCH", "DELETE")]


@pytest.fixture
def no_secret(azure: FakeAzure, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    printed = "".join(capfd.readouterr())
    assert not [secret for secret in azure.secrets if secret in printed]


@pytest.mark.usefixtures("no_secret")
def test_what_has_not_changed_is_not_uploaded_again(azure: FakeAzure, project: Path) -> None:
    first = ran("register")
    assert states(first) == {"small": "registered", "goodbye": "registered", "hello": "registered"}
    versions = {row["name"]: row["version"] for row in first["assets"]}
    assert set(azure.environments) == {("small", versions["small"])}
    assert {("hello", versions["hello"]), ("goodbye", versions["goodbye"])} == set(azure.components)
    azure.clear()
    assert set(states(ran("register")).values()) == {"there"}
    assert uploads(azure) == []
    assert len(azure.requests) == 3, "each asset is asked for once"


def test_what_changed_is_registered_and_what_stands_on_it(azure: FakeAzure, project: Path) -> None:
    before = {row["name"]: row["version"] for row in ran("register")["assets"]}
    (project / "components/hello/greet.py").write_text("print('hi')\n")
    changed = ran("register")
    assert states(changed) == {"small": "there", "goodbye": "there", "hello": "registered"}
    (project / "environments/small/Dockerfile").write_text("FROM ubuntu:22.04 AS small\n")
    found = ran("register", "--dry-run")
    assert states(found) == {"small": "changed", "goodbye": "changed", "hello": "changed"}
    rows = {row["name"]: row for row in found["assets"]}
    assert rows["goodbye"]["latest"] == before["goodbye"]
    assert rows["hello"]["latest"] != before["hello"], "the latest is what was registered last"
    assert len(azure.components) == 3, "a dry run registers nothing"


def test_a_dry_run_of_what_is_new_changes_nothing(azure: FakeAzure, project: Path) -> None:
    found = ran("register", "hello", "--dry-run")
    assert states(found) == {"small": "new", "hello": "new"}
    assert uploads(azure) == []


def test_a_torn_upload_goes_on_where_it_was(azure: FakeAzure, project: Path) -> None:
    azure.fail(r"/components/hello/versions/", status=403, times=1, method="PUT")
    with pytest.raises((InputError, AzureError), match=r"registering component hello 1\.0\.0-.*\n(.*\n)*"):
        ran("register")
    assert {name for name, _ in (*azure.environments, *azure.components)} == {"small", "goodbye"}
    azure.clear()
    assert states(ran("register")) == {"small": "there", "goodbye": "there", "hello": "registered"}
    assert not [path for path in uploads(azure) if "goodbye" in path or "environments" in path]


def test_one_of_them_with_what_it_needs(azure: FakeAzure, project: Path) -> None:
    assert states(ran("register", "hello")) == {"small": "registered", "hello": "registered"}
    with pytest.raises(InputError, match="no component or environment of that name"):
        ran("register", "helo")


def test_to_a_registry(azure: FakeAzure, project: Path) -> None:
    found = ran("register", "--registry", "reg", "hello")
    versions = {row["name"]: row["version"] for row in found["assets"]}
    (body,) = [body for (name, _), body in azure.registry.of("components").items() if name == "hello"]
    wanted = f"azureml://registries/reg/environments/small/versions/{versions['small']}"
    assert body["properties"]["componentSpec"]["environment"] == wanted
    assert azure.components == {}
    azure.clear()
    assert set(states(ran("register", "--registry", "reg", "hello")).values()) == {"there"}
    assert uploads(azure) == []
    (project / "components/hello/greet.py").write_text("print('hi')\n")
    changed = ran("register", "--registry", "reg", "hello", "--dry-run")["assets"][1]
    assert (changed["latest"], changed["state"]) == (versions["hello"], "changed")


def test_without_a_workspace_the_three_ways_are_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUBSCRIPTION", "RESOURCEGROUP", "WORKSPACE_NAME"):
        monkeypatch.delenv(f"AZUREML_ARM_{name}", raising=False)
    with pytest.raises(InputError) as error:
        ran("register")
    (problem,) = error.value.problems
    assert all(way in problem.fix for way in ("--workspace", "AZUREML_ARM_WORKSPACE_NAME", "config.json"))


def test_a_refusal_is_one_message(azure: FakeAzure, project: Path) -> None:
    azure.fail(r"/components/goodbye/versions/", status=409, times=20, method="PUT")
    with pytest.raises(InputError, match="registering component goodbye") as error:
        ran("register", "goodbye")
    assert len(error.value.problems) == 1


@pytest.mark.recipe
def test_all_of_ours(azure: FakeAzure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little of the runtime, which goes with most of them: uploading it all of those times shows nothing more."""
    for name in ("components", "environments", "src"):
        (tmp_path / name).symlink_to(PROJECT / name)
    monkeypatch.chdir(tmp_path)
    small_runtime(tmp_path, monkeypatch)
    first = ran("register")
    assert set(states(first).values()) == {"registered"}
    shutil.rmtree(tmp_path / "azure", ignore_errors=True)
