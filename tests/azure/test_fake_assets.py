"""The fake keeps environments, code, components, data and models as Azure ML does; by the real client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

pytestmark = pytest.mark.azurite

COMPONENT = """\
name: {name}
version: "1"
type: command
code: ./src
environment: {environment}
command: {command}
"""
ENVIRONMENT = "azureml:cpu:1"


@pytest.fixture
def client(azure: Any) -> Any:
    return azure.client(show_progress=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("print(1)\n")
    return tmp_path


def component(folder: Path, name: str = "say", environment: str = ENVIRONMENT, command: str = "python main.py") -> Any:
    from azure.ai.ml import load_component

    file = folder / f"{name}.yml"
    file.write_text(COMPONENT.format(name=name, environment=environment, command=command))
    return load_component(file)


def environment(name: str = "cpu", image: str = "ubuntu:22.04") -> Any:
    from azure.ai.ml.entities import Environment

    return Environment(name=name, version="1", image=image)


def test_a_version_never_changes(azure, client, folder) -> None:
    client.environments.create_or_update(environment())
    client.components.create_or_update(component(folder))
    with pytest.raises(HttpResponseError, match='field "command" is immutable'):
        client.components.create_or_update(component(folder, command="python main.py --fast"))
    with pytest.raises(ResourceExistsError, match="this name and version already exists"):
        client.environments.create_or_update(environment(image="debian:12"))


def test_a_component_needs_an_environment_that_is_there(azure, client, folder) -> None:
    with pytest.raises(ResourceNotFoundError, match="Environment gpu:1 was not found"):
        client.components.create_or_update(component(folder, environment="azureml:gpu:1"))
    assert not azure.components


@pytest.mark.parametrize("name", ["in valid", "-first", "a" * 256], ids=["space", "dash", "long"])
def test_a_name_that_breaks_the_rules_is_refused(azure, client, name) -> None:
    with pytest.raises(HttpResponseError, match="is invalid"):
        client.environments.create_or_update(environment(name))


def test_curated_names_are_not_to_be_had(azure, client) -> None:
    with pytest.raises(HttpResponseError, match="can not start with the prefix AzureML"):
        client.environments.create_or_update(environment("AzureML-mine"))


@pytest.mark.parametrize("access", ["key", "sas", "identity"])
def test_data_is_uploaded_by_key_by_sas_or_by_identity(azure, client, folder, access) -> None:
    from azure.ai.ml.entities import Data

    azure.storage_access = access
    data = Data(name="numbers", version="1", type="uri_folder", path=str(folder / "src"))
    made = client.data.create_or_update(data)
    assert made.path.startswith("azureml://")
    assert any(name.endswith("main.py") for name in azure.blobs.container("azureml-blobstore"))
    assert client.data.get("numbers", version="1").path == made.path


def test_a_model_version_exists_once(azure, client, folder) -> None:
    from azure.ai.ml.entities import Model

    client.models.create_or_update(Model(name="net", version="1", path=str(folder / "src"), type="custom_model"))
    (folder / "src" / "main.py").write_text("print(2)\n")
    with pytest.raises(ResourceExistsError, match="already exists"):
        client.models.create_or_update(Model(name="net", version="1", path=str(folder / "src"), type="custom_model"))


def test_a_registry_has_its_own(azure, folder) -> None:
    client = azure.client(registry="reg", show_progress=False)
    client.environments.create_or_update(environment())
    client.components.create_or_update(
        component(folder, environment="azureml://registries/reg/environments/cpu/versions/1")
    )
    assert list(azure.registry.of("components")) == [("say", "1")]
    assert (
        client.components.get("say", version="1").environment == "azureml://registries/reg/environments/cpu/versions/1"
    )
    with pytest.raises(ResourceNotFoundError, match="Not found component other"):
        client.components.get("other", version="1")


def test_what_is_not_there_is_said_so(azure, client) -> None:
    with pytest.raises(ResourceNotFoundError, match="Environment cpu:1 was not found"):
        client.environments.get("cpu", version="1")
    with pytest.raises(ResourceNotFoundError, match="Not found component say"):
        client.components.get("say", version="1")
    with pytest.raises(ResourceNotFoundError, match="Not Found"):
        client.compute.get("big")
    with pytest.raises(ResourceNotFoundError, match="Could not find datastore"):
        client.datastores.get("mine")
