"""The files of pipelines, imported as a file in any folder is."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"


@pytest.fixture(scope="module")
def pipeline_file() -> Iterator[Callable[[str], ModuleType]]:
    """pipeline_file(name): the module of a file. What it has imported of the project is forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)

    def load(name: str) -> ModuleType:
        specification = importlib.util.spec_from_file_location(f"{name}_pipeline", PIPELINES / f"{name}.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module

    yield load
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] == "components":
            del sys.modules[name]
