"""azure-ai-ml is imported in one room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import allranks

SOURCE = Path(allranks.__file__).parent


def test_no_other_room_imports_the_sdk() -> None:
    files = [file for file in SOURCE.rglob("*.py") if SOURCE / "sdk" not in file.parents]
    found = {str(file.relative_to(SOURCE)): names for file in files if (names := sorted(set(_imported(file))))}
    assert found == {}
    assert set(_imported(SOURCE / "sdk/session.py")) == {"azure.ai.ml"}


def _imported(file: Path) -> Iterator[str]:
    """Yield the modules of azure-ai-ml that a file imports, at its top or in a function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        else:
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (module for module in modules if f"{module}.".startswith("azure.ai.ml."))
