"""What runs in the Python of a step is written for Python 3.7, whatever Python allranks itself has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import allranks

SOURCE = Path(allranks.__file__).parents[1]
PYTHON_3_7 = (3, 7)


def sources() -> dict[Path, ast.Module]:
    """Return the files that may have a program for another interpreter."""
    texts = {path: path.read_bytes() for path in sorted(Path(allranks.__file__).parent.rglob("*.py"))}
    may_have = re.compile(rb"\.__file__|\.py\"|\"\s*(\\n)?(import|from) ")
    return {path: ast.parse(text) for path, text in texts.items() if may_have.search(text)}


def travelling(trees: dict[Path, ast.Module]) -> Iterator[Path]:
    """Yield the files that other files name by their paths: as MODULE.__file__, or as a text that ends with .py."""
    for tree in trees.values():
        modules = {
            alias.asname or alias.name: f"{node.module}.{alias.name}".replace(".", "/")
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("allranks")
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "__file__" and isinstance(node.value, ast.Name):
                if node.value.id in modules:
                    yield SOURCE / f"{modules[node.value.id]}.py"
            elif isinstance(node, ast.Constant) and re.fullmatch(r"/?allranks/[\w/]+\.py", str(node.value)):
                program = SOURCE / str(node.value).lstrip("/")
                yield from program.parent.glob("*.py")  # it imports its package


def programs(trees: dict[Path, ast.Module]) -> Iterator[tuple[Path, str]]:
    """Yield the texts that are Python programs, for another interpreter."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and re.match(r"\s*(import|from) \w+", text):
                try:
                    ast.parse(text)
                except SyntaxError:
                    continue  # prose
                yield path, text


def test_files_for_the_python_of_a_step_parse_in_3_7() -> None:
    trees = sources()
    found = {path.relative_to(SOURCE / "allranks").as_posix() for path in travelling(trees)}
    known = {"driver", "hub", "program", "tables", "worker"}
    assert found >= {f"local/parallel/{name}.py" for name in known} | {
        "contract/report.py",
        "local/debugging/in_rank.py",
    }
    for name in found:
        ast.parse((SOURCE / "allranks" / name).read_bytes(), name, feature_version=PYTHON_3_7)
    texts = list(programs(trees))
    assert {"local/missing_modules.py"} <= {path.relative_to(SOURCE / "allranks").as_posix() for path, _ in texts}
    for path, text in texts:
        ast.parse(text, str(path), feature_version=PYTHON_3_7)
