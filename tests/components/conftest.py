"""Components' code to be called directly, and results of real runs that several tests look at."""

import importlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
from component_processes import COMPONENTS, clean, folder_of, run_small_script, train

Importer = Callable[[str, str], ModuleType]


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Iterator[Importer]:
    """Imports a module of a component's folder: code("prepare_images", "splits"). Forgotten after the test."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def import_module(component: str, name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(folder_of(component)))
        return importlib.import_module(name)

    yield import_module
    for name, module in list(sys.modules.items()):
        file = str(getattr(module, "__file__", None) or "")
        if file.startswith(f"{COMPONENTS}{os.sep}") and not name.startswith("allranks_steps"):
            del sys.modules[name]


@pytest.fixture
def on_one_rank(code: Importer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """on_one_rank(component, function, *arguments): the function of a component's program, which has the same
    name, in this process."""
    handler, hook = signal.getsignal(signal.SIGTERM), sys.excepthook

    def run(component: str, function: str, *arguments: str) -> None:
        from allranks.runtime.script import started

        spec = folder_of(component) / "component.yaml"
        monkeypatch.setattr("sys.argv", [f"{function}.py", "--spec", str(spec), *arguments])
        with mock.patch.dict(os.environ, clean(), clear=True), started() as ranks:
            getattr(code(component, function), function)(ranks)

    yield run
    signal.signal(signal.SIGTERM, handler)
    sys.excepthook = hook  # the program replaces it


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits as prepare_images, run as a process, prepares them."""
    folder = tmp_path_factory.mktemp("digits")
    ended = run_small_script("prepare_images", "--images", str(folder / "images"), folder=folder)
    assert ended.codes == [0], ended.errors
    return folder / "images"


@pytest.fixture(scope="session")
def trained(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and the checkpoints of a training on two ranks."""
    folder = tmp_path_factory.mktemp("trained")
    # Of 1259 training images and 179 validation images the ranks then have unequal shares.
    settings = ["--preset", "resnet_micro", "--num_train_epochs", "6", "--per_device_train_batch_size", "45"]
    settings += ["--learning_rate", "0.008", "--max_shift", "1", "--save_steps", "50"]
    ended = train(digits, folder, *settings, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    return folder


@pytest.fixture(scope="session")
def empty_registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's database with its tables, which take it seconds to make."""
    from mlflow import MlflowClient

    file = tmp_path_factory.mktemp("registry") / "mlflow.db"
    MlflowClient(f"sqlite:///{file}").search_registered_models()
    return file


@pytest.fixture
def registry_address(empty_registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty registry of its own, which the code under test finds by the environment."""
    import mlflow

    file = tmp_path / "mlflow.db"
    shutil.copy(empty_registry, file)
    address = f"sqlite:///{file}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    mlflow.MlflowClient(address).create_experiment("models", artifact_location=f"file://{tmp_path}/artifacts")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "models")
    yield address
    while mlflow.active_run():
        mlflow.end_run()
