"""The structure of the source: how many parameters a function has, where a file imports, and what."""

import ast
from collections.abc import Iterator
from pathlib import Path

import allranks

SOURCE = Path(allranks.__file__).parent
MOST = 8
OPTION_LISTS = {
    *("api/run.py:run", "api/run.py:launch", "project/script_job.py:script_job"),
    *(f"cli/commands/{name}.py:{name}" for name in ("launch", "run", "submit", "rerun", "logs")),
}
"""Functions whose parameters are the options of a command, or of the Python API."""

TEMPLATE = SOURCE / "project/template"


def files() -> Iterator[tuple[str, list[str], ast.Module]]:
    """Yield the name, the lines and the tree of each file that is not part of a user's project."""
    for file in sorted(SOURCE.rglob("*.py")):
        if TEMPLATE not in file.parents:
            text = file.read_text(encoding="utf-8")
            yield file.relative_to(SOURCE).as_posix(), text.split("\n"), ast.parse(text)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_only_option_lists_have_many_parameters() -> None:
    found = set()
    for name, _, tree in files():
        for function in functions(tree):
            given = function.args
            names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > MOST:
                found.add(f"{name}:{function.name}")
    assert found == OPTION_LISTS


def test_an_import_in_a_function_says_what_it_saves() -> None:
    """Its line, or the one above the block of imports, has a comment."""
    found = set()
    for name, lines, tree in files():
        for function in functions(tree):
            for node in ast.walk(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_explained(node, lines):
                    found.add(f"{name}:{node.lineno}: {lines[node.lineno - 1].strip()}")
    assert found == set()


def test_azure_ai_ml_is_imported_in_one_room() -> None:
    found = {
        name
        for name, _, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(map(_is_of_sdk, _modules(node)))
    }
    assert {name for name in found if not name.startswith("sdk/")} == set()
    assert found


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]


def _is_of_sdk(module: str) -> bool:
    return f"{module}.".startswith("azure.ai.ml.")


def _is_explained(node: ast.Import | ast.ImportFrom, lines: list[str]) -> bool:
    if any("#" in line for line in lines[node.lineno - 1 : node.end_lineno]):
        return True
    above = node.lineno - 2
    while lines[above].strip().startswith(("import ", "from ")):
        above -= 1
    return lines[above].strip().startswith("#")
