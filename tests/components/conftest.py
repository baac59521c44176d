"""Components' code to be called directly, and results of real runs that several tests look at."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from component_processes import COMPONENTS, execute, train

Importer = Callable[[str, str], ModuleType]


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Iterator[Importer]:
    """Imports a module of a component's folder: code("prepare_images", "splits"). Forgotten after the test."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for included in ("get_champion", "prepare_images"):  # whose no_model.py and prepared_images.py the others include
        monkeypatch.syspath_prepend(str(COMPONENTS / included))

    def import_module(component: str, name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(COMPONENTS / component))
        return importlib.import_module(name)

    yield import_module
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(f"{COMPONENTS}{os.sep}"):
            del sys.modules[name]


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits as prepare_images, run as a process, prepares them."""
    folder = tmp_path_factory.mktemp("digits")
    ended = execute("prepare_images", {"source": "digits"}, {"images": folder / "images"}, folder)
    assert ended.codes == [0], ended.errors
    return folder / "images"


@pytest.fixture(scope="session")
def trained(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and the checkpoints of a training on two ranks."""
    folder = tmp_path_factory.mktemp("trained")
    # Of 179 validation images the first rank then has a batch more than the second.
    settings = ["--network", "mlp", "--epochs", "6", "--batch_size", "89", "--checkpoint_every", "50"]
    ended = train(digits, folder, *settings, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    return folder
