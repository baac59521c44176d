"""Which workspace is meant: by options, a named file, variables, or the file that the SDK finds."""

import json
from pathlib import Path
from typing import Any

import pytest

from allranks.azure.workspace import WorkspaceName, WorkspaceOptions, resolve
from allranks.cli.commands.register import register
from allranks.cli.options import AzureOptions
from allranks.errors import InputError

VARIABLES = {
    "AZUREML_ARM_SUBSCRIPTION": "variable-sub",
    "AZUREML_ARM_RESOURCEGROUP": "variable-group",
    "AZUREML_ARM_WORKSPACE_NAME": "variable-ws",
}


def write_config(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"subscription_id": f"{name}-sub", "resource_group": f"{name}-group", "workspace_name": f"{name}-ws"}
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project" / "below"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def name_of(options: WorkspaceOptions, variables: dict[str, str] | None = None) -> str:
    found = resolve(options, variables or {})
    assert found.workspace_name.removesuffix("-ws") == found.resource_group.removesuffix("-group")
    return found.workspace_name


def test_options_come_first(here: Path) -> None:
    write_config(here / "config.json", "file")
    assert name_of(WorkspaceOptions("o-sub", "o-group", "o-ws"), VARIABLES) == "o-ws"


def test_a_file_that_is_named_comes_before_variables(here: Path) -> None:
    named = write_config(here / "other.json", "named")
    assert name_of(WorkspaceOptions(config=named), VARIABLES) == "named-ws"


def test_variables_come_before_a_file_that_is_found(here: Path) -> None:
    write_config(here / "config.json", "file")
    assert name_of(WorkspaceOptions(), VARIABLES) == "variable-ws"


def test_a_part_of_it_by_option_and_the_rest_from_elsewhere(here: Path) -> None:
    assert resolve(WorkspaceOptions(workspace_name="mine"), VARIABLES) == WorkspaceName(
        "variable-sub", "variable-group", "mine"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (".azureml/config.json", "config.json"),
        (".azureml/config.json", ".azureml/project.json"),
        (".azureml/project.json", "aml_config/config.json"),
        ("aml_config/config.json", "config.json"),
        ("config.json", "project.json"),
        ("../.azureml/config.json", "config.json"),
        ("config.json", "../config.json"),
    ],
)
def test_files_are_found_in_the_order_of_the_sdk(first: str, second: str, here: Path) -> None:
    """The SDK itself is asked too."""
    from azure.ai.ml import MLClient

    write_config(here / first, "first")
    write_config(here / second, "second")
    assert name_of(WorkspaceOptions()) == "first-ws"
    assert MLClient.from_config(object()).workspace_name == "first-ws"


def test_a_file_in_the_older_form(here: Path) -> None:
    scope = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w1"
    (here / "config.json").write_text(json.dumps({"Scope": scope}))
    assert resolve(WorkspaceOptions(), {}) == WorkspaceName("s", "g", "w1")


def test_no_workspace_is_told_with_the_three_ways(here: Path) -> None:
    with pytest.raises(InputError) as told:
        resolve(WorkspaceOptions(subscription_id="s"), {})
    for said in ("no resource group and no workspace", "--workspace NAME", "AZUREML_ARM_WORKSPACE_NAME", "config.json"):
        assert said in str(told.value)


WRONG: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "it is not JSON"),
    "a key that lacks": ({"subscription_id": "s", "resource_group": "g"}, "it has no workspace_name"),
    "a list": ([], "it does not name a workspace"),
    "a short scope": ({"Scope": "/subscriptions"}, "it does not name a workspace"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
def test_a_file_that_names_none(content: Any, said: str, here: Path) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (here / "config.json").write_text(text)
    with pytest.raises(InputError, match=said):
        resolve(WorkspaceOptions(), {})


def test_a_file_that_is_not_there(here: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        resolve(WorkspaceOptions(config=here / "gone.json"), VARIABLES)


def test_a_folder_of_runs_is_no_workspace(here: Path) -> None:
    with pytest.raises(InputError, match="--folder"):
        resolve(WorkspaceOptions(workspace_name="./.allranks"), VARIABLES)


def test_a_workspace_and_a_registry() -> None:
    with pytest.raises(InputError, match="remove one of the options"):
        register(azure=AzureOptions(workspace_name="ws"), registry="reg")
