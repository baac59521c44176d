"""azure-ai-ml imported without its client: what is missing is loaded when it is used, and users see no difference."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("light import")]  # the SDK is imported in new processes

LIGHT = """
import importlib, json, sys
from allranks.deferred_imports import Placeholder
from allranks.sdk import light_import
def placeholders():
    return {
        (name, key)
        for name, module in list(sys.modules.items())
        for key, value in list(vars(module).items())
        if type(value) is Placeholder
    }
"""
ONE_PROCESS = """
light_import.import_sdk()
loaded = sorted(sys.modules)
places = [(sys.modules[name].__file__, key) for name, key in placeholders()]
lacking = []
for name in STANDARD:
    parent, _, child = name.rpartition(".")
    if not hasattr(importlib.import_module(parent), child):
        lacking.append(name)
import azure.ai.ml as sdk, azure.ai.ml.entities as entities
kinds = [type(getattr(package, name)).__name__ for package in (sdk, entities) for name in package.__all__]
from azure.ai.ml import MLClient
finders = [type(one).__module__ for one in sys.meta_path]
client = ["MLClient" in dir(sdk), MLClient.__module__]
after = sorted(placeholders())
print(json.dumps(dict(loaded=loaded, places=places, lacking=lacking, kinds=kinds, finders=finders, client=client,
                      after=after)))
"""


def ran(code: str) -> Any:
    """Run code in a new process, and return what it prints as JSON."""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.fixture(scope="module")
def light() -> Any:
    """What a process finds that imports the SDK without its client, and then its client."""
    whole = ran(
        "import json, sys, azure.ai.ml\n"
        "print(json.dumps(sorted(name for name in sys.modules if '.' in name and not any(part.startswith('_') for part "
        "in name.split('.')) and name.split('.')[0] in sys.stdlib_module_names)))"
    )
    names = [name for name in whole if not name.startswith("encodings.")]
    assert "urllib.request" in names
    return ran(f"{LIGHT}STANDARD = {names!r}\n{ONE_PROCESS}")


def test_the_client_is_not_loaded_until_packages_that_users_import_from_need_its_names(light: Any) -> None:
    for name in ("azure.ai.ml._ml_client", "azure.storage.blob", "aiohttp", "cryptography", "jwt", "jsonschema"):
        assert name not in light["loaded"]
    assert "azure.ai.ml.entities" in light["loaded"]
    assert len(light["kinds"]) > 200
    assert "Placeholder" not in light["kinds"]
    assert light["client"] == [True, "azure.ai.ml._ml_client"]


def test_a_program_that_imports_the_client_has_the_real_sdk(light: Any) -> None:
    assert len(light["places"]) > 100
    assert light["after"] == []
    assert not any(name.startswith("allranks") for name in light["finders"])


def test_no_placeholder_is_the_class_of_an_except_clause(light: Any) -> None:
    files: dict[str, set[str]] = {}
    for file, name in light["places"]:
        files.setdefault(file, set()).add(name)
    for file, names in files.items():
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                caught = {inner.id for inner in ast.walk(node.type) if isinstance(inner, ast.Name)}
                assert not caught & names, f"{file}:{node.lineno}"


def test_the_standard_library_has_the_attributes_that_the_whole_sdk_leaves(light: Any) -> None:
    """A user's file may use `urllib.request` after `import urllib`."""
    assert light["lacking"] == []


@pytest.mark.recipe
def test_another_structure_of_the_sdk_is_imported_as_usual() -> None:
    found = ran(
        f"{LIGHT}"
        "from allranks import deferred_imports\n"
        "def unsuited(self):\n"
        "    raise TypeError('an enumeration that is not there')\n"
        "deferred_imports.Placeholder.__hash__ = unsuited\n"
        "light_import.DEFERRED = {*light_import.DEFERRED, 'azure.ai.ml.constants'}\n"
        "light_import.import_sdk()\n"
        "print(json.dumps([len(placeholders()), 'azure.ai.ml._ml_client' in sys.modules]))"
    )
    assert found == [0, True]
