"""azure-ai-ml imported without its client: what is missing is loaded when it is used, and users see no difference."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # nearly every test imports the SDK in a new process

LIGHT = """
import json, sys
from pathlib import Path
from allranks.deferred_imports import Placeholder
from allranks.sdk import light_import
def placeholders():
    return {
        (name, key)
        for name, module in list(sys.modules.items())
        for key, value in list(vars(module).items())
        if type(value) is Placeholder
    }
light_import.import_sdk()
"""


def ran(code: str) -> Any:
    """Run code in a new process that has imported the SDK without its client, and return what it prints as JSON."""
    command = [sys.executable, "-c", LIGHT + code]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_the_client_is_not_loaded_until_packages_that_users_import_from_need_its_names() -> None:
    loaded, *names = ran(
        "loaded = sorted(sys.modules)\n"
        "import azure.ai.ml as sdk, azure.ai.ml.entities as entities\n"
        "kinds = [type(getattr(package, name)).__name__ for package in (sdk, entities) for name in package.__all__]\n"
        "print(json.dumps([loaded, len(kinds), kinds.count('Placeholder'), 'MLClient' in dir(sdk), "
        "sdk.MLClient.__module__]))"
    )
    for name in ("azure.ai.ml._ml_client", "azure.storage.blob", "aiohttp", "cryptography", "jwt", "jsonschema"):
        assert name not in loaded
    assert "azure.ai.ml.entities" in loaded
    assert names[0] > 200
    assert names[1:] == [0, True, "azure.ai.ml._ml_client"]


def test_a_program_that_imports_the_client_has_the_real_sdk() -> None:
    before, after, meta_path = ran(
        "before = len(placeholders())\nfrom azure.ai.ml import MLClient\n"
        "print(json.dumps([before, sorted(placeholders()), [type(one).__module__ for one in sys.meta_path]]))"
    )
    assert before > 100
    assert after == []
    assert not any(name.startswith("allranks") for name in meta_path)


def test_no_placeholder_is_the_class_of_an_except_clause() -> None:
    files: dict[str, list[str]] = ran(
        "found = {}\n"
        "for name, key in placeholders():\n"
        "    found.setdefault(sys.modules[name].__file__, []).append(key)\n"
        "print(json.dumps(found))"
    )
    for file, names in files.items():
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                caught = {inner.id for inner in ast.walk(node.type) if isinstance(inner, ast.Name)}
                assert not caught & set(names), f"{file}:{node.lineno}"


def test_another_structure_of_the_sdk_is_imported_as_usual() -> None:
    code = LIGHT.replace(
        "light_import.import_sdk()",
        "from allranks import deferred_imports\n"
        "def unsuited(self):\n"
        "    raise TypeError('an enumeration that is not there')\n"
        "deferred_imports.Placeholder.__hash__ = unsuited\n"
        "light_import.DEFERRED = {*light_import.DEFERRED, 'azure.ai.ml.constants'}\n"
        "light_import.import_sdk()\n"
        "print(json.dumps([len(placeholders()), 'azure.ai.ml._ml_client' in sys.modules]))",
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == [0, True]


def test_the_standard_library_has_the_attributes_that_the_whole_sdk_leaves() -> None:
    """A user's file may use `urllib.request` after `import urllib`."""
    public = (
        "json.dumps(sorted(name for name in sys.modules if '.' in name and not any(part.startswith('_') for part in "
        "name.split('.')) and name.split('.')[0] in sys.stdlib_module_names))"
    )
    whole = f"import json, sys, azure.ai.ml\nprint({public})"
    completed = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    names = [name for name in json.loads(completed.stdout) if not name.startswith("encodings.")]
    assert "urllib.request" in names
    missing = ran(
        "import importlib\nlacking = []\n"
        f"for name in {names!r}:\n"
        "    parent, _, child = name.rpartition('.')\n"
        "    if not hasattr(importlib.import_module(parent), child): lacking.append(name)\n"
        "print(json.dumps(lacking))"
    )
    assert missing == []
