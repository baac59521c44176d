"""Upload the runtime with code that uses it.

The runtime part of this package (what its `.amlignore` lets through) is copied next to code that imports it, as the
folder `allranks`. Code that brings an `allranks` of its own, also by an additional include, keeps that one.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.sdk.files import FileList, list_path
from allranks.sdk.ignore_rules import NAMES, read_rules
from allranks.sdk.thread_safety import parsed

NAME = "allranks"
_PACKAGE = Path(__file__).resolve().parents[1]
_OWN = (f"{NAME}.py", f"{NAME}/__init__.py")
_PARTS = ("contract", "errors", "hardware", "runtime")
_NAMES = ("", "*", "__version__", "InputError", "Problem")
"""Names in the package itself that work without its other parts; "": the package alone."""
_IN_COMMAND = re.compile(rf"\b{NAME}\.(?:{'|'.join(_PARTS)})\b|\b(?:import|from)\s+{NAME}\b")
_IMPORT = re.compile(rf"^\s*(?:import|from)\s+{NAME}\b", re.MULTILINE)
_SHELL = (".sh", ".bash")


def with_runtime(code: FileList, command: str, where: str) -> FileList:
    """Return the files of code, with the runtime if the code or the command uses it and the code does not bring it.

    where: the place that messages name

    Raise InputError if the code's ignore file excludes a part of the runtime: Azure ML's own tools, which read that
    file again in an exported folder, would not upload it.
    """
    if not code.files or any(name in code.files for name in _OWN):
        return code
    if not command_uses_runtime(command) and not any(map(_uses_runtime, code.files.items())):
        return code
    runtime = _runtime()
    _refuse_ignored(code.files, runtime, where)
    return replace(code, files=dict(sorted({**code.files, **runtime}.items())))


@functools.cache
def _runtime() -> Mapping[str, Path]:
    """Return the files of the runtime, which stay the same while this process has it imported."""
    return list_path(_PACKAGE, str(_PACKAGE)).below(NAME).files


def command_uses_runtime(command: str) -> bool:
    """Return whether a command names the runtime, as `python -m allranks.runtime train.py` does."""
    return bool(_IN_COMMAND.search(command))


def _uses_runtime(file: tuple[str, Path]) -> bool:
    name, path = file
    if not name.endswith((".py", *_SHELL)):
        return False
    content = path.read_bytes()
    if NAME.encode() not in content:
        return False
    text = content.decode("utf-8", errors="replace")
    if name.endswith(_SHELL):
        return command_uses_runtime(text)
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError):
        # It may be written for another Python than this one.
        return bool(_IMPORT.search(text))
    return any(_is_in_runtime(module) for module in _imported(tree))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_in_runtime(module: str) -> bool:
    first, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    # Anything else, for example `allranks.run`, is only in a step's environment that has the whole package installed.
    return first == NAME and (part in _NAMES or part in _PARTS)


def _refuse_ignored(code: Mapping[str, Path], runtime: Mapping[str, Path], where: str) -> None:
    file = next((code[name] for name in NAMES if name in code), None)
    if file is None:
        return
    rules = read_rules(file)
    ignored = [name for name in runtime if rules.exclude(name)]
    if ignored:
        found = f"{rules.file} excludes {', '.join(ignored[:3])}{' and more' if len(ignored) > 3 else ''}"
        expected = "all of the runtime, which the code imports and which is uploaded with it"
        raise InputError(Problem(where, found, expected, f"add a last line to {rules.file}: !/{NAME}/**"))
