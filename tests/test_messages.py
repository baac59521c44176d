"""Problems as they are written in the source: the command prints a heading before each of their parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "allranks"
PARTS = ("where", "found", "expected", "fix")
MAKERS = ("Problem", "wrong")
"""Functions that take the parts of a problem in this order."""


def beginnings(node: ast.expr | None, names: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Yield how the text of an expression may begin, also through a local variable."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from beginnings(node.values[0] if node.values else None, names)
    elif isinstance(node, ast.BinOp):
        yield from beginnings(node.left, names)
    elif isinstance(node, ast.IfExp):
        yield from beginnings(node.body, names)
        yield from beginnings(node.orelse, names)
    elif isinstance(node, ast.Name):
        for value in names.get(node.id, ()):
            yield from beginnings(value, {})


def problems(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the part and the beginning of each text of a problem in a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            continue
        names: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names.setdefault(node.targets[0].id, []).append(node.value)
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            maker = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if maker in MAKERS:
                parts = dict(zip(PARTS, node.args, strict=False)) | {each.arg: each.value for each in node.keywords}
                for part, value in parts.items():
                    for text in beginnings(value, names):
                        yield node.lineno, str(part), text


def test_a_part_of_a_problem_does_not_repeat_its_heading() -> None:
    doubled = [
        f"{file.relative_to(SOURCE)}:{line}: {text}"
        for file in sorted(SOURCE.rglob("*.py"))
        for line, part, text in problems(file)
        if part in ("found", "expected", "fix") and text.split(" ")[0].rstrip(":").lower() == part
    ]
    assert doubled == []


def test_the_walk_finds_what_is_doubled(tmp_path: Path) -> None:
    file = tmp_path / "doubled.py"
    file.write_text('def f(x):\n    found = f"found {x}"\n    return Problem("here", found, expected="expected y")\n')
    texts = {text for _, _, text in problems(file)}
    assert {"found ", "expected y"} <= texts
