"""get_champion: the newest version out of a real registry, or that there is none; never none by mistake."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks_steps.models.mlmodel import is_placeholder

# MLflow takes seconds to import, and to make its tables.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("registry")]

Importer = Callable[[str, str], Any]

MLMODEL = "flavors:\n  python_function:\n    loader_module: none\nmodel_uuid: {}\n"


@pytest.fixture
def script(code: Importer) -> Any:
    return code("get_champion", "get_champion")


def register(address: str, folder: Path, name: str = "digits", **tags: str) -> None:
    """A version whose files are those of the folder, which holds the least that is a model."""
    from mlflow import MlflowClient

    client = MlflowClient(address, address)
    if not client.search_registered_models(f"name='{name}'"):
        client.create_registered_model(name)
    client.create_model_version(name, str(folder), tags=tags)


def test_without_a_version_a_file_says_so(script: Any, registry_address: str, tmp_path: Path) -> None:
    assert script.get_champion("digits", tmp_path / "model", tmp_path / "champion") is None
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["no_model.json"]
    assert is_placeholder(tmp_path / "model")
    said = json.loads((tmp_path / "champion/champion.json").read_text())
    assert said == {"name": "digits", "version": None, "tags": {}}


def test_the_newest_is_that_of_the_highest_number(script: Any, registry_address: str, tmp_path: Path) -> None:
    for number in range(1, 11):
        folder = tmp_path / f"version {number}"
        folder.mkdir()
        (folder / "MLmodel").write_text(MLMODEL.format(number))
        register(registry_address, folder, number=str(number))
    found = script.get_champion("digits", tmp_path / "model", tmp_path / "champion")
    assert found.number == "10"
    assert (tmp_path / "model/MLmodel").read_text() == MLMODEL.format(10)
    said = json.loads((tmp_path / "champion/champion.json").read_text())
    assert said == {"name": "digits", "version": "10", "tags": {"number": "10"}}


def test_a_version_that_is_no_mlflow_model_is_refused(script: Any, registry_address: str, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/weights.bin").touch()
    register(registry_address, tmp_path / "weights")
    with pytest.raises(InputError, match="holds no file MLmodel"):
        script.get_champion("digits", tmp_path / "model", tmp_path / "champion")
    assert not (tmp_path / "champion").exists()


@pytest.mark.parametrize(
    ("address", "name", "said"),
    [
        ("", "digits", "MLFLOW_TRACKING_URI: it is not set"),
        ("http://127.0.0.1:1", "digits", "the versions of 'digits' cannot be listed"),
        ("sqlite:///x.db", "it's", "expected: the name of a model, without quotes"),
    ],
    ids=["no address", "nobody answers", "a name with a quote"],
)
def test_a_registry_that_does_not_answer_is_not_an_empty_one(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, name: str, said: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(InputError, match=said):
        script.get_champion(name, tmp_path / "model", tmp_path / "champion")
    assert list(tmp_path.iterdir()) == []
