"""Find the modules that a Python program imports at its start: the imports of its script, and of the modules in its own
folders that the script imports. Nothing is imported."""

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from typing import TypeGuard

from allranks.contract.commands import Start

MAX_FILES = 500
"""Maximum number of a program's files that are read. The others are ignored."""

_IS_MAIN = ("__name__ == '__main__'", "'__main__' == __name__")
_PATH_CHANGES = ("sys.path", "addsitedir", "sys.meta_path")


@dataclass(frozen=True)
class Import:
    """An import of a module that is not in the program's own folders.

    module: its top-level name
    name:   its name, with the packages that it is in
    file:   the importing file, relative to the program's folder; "" for the command itself
    """

    name: str
    file: str
    line: int = 0

    @property
    def module(self) -> str:
        return self.name.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "the command"


@dataclass(frozen=True)
class Program:
    """The imports and the text of a program.

    imports: the imports of other modules, which it executes unconditionally
    script:  the text of its script
    text:    the text of all its own files
    """

    imports: tuple[Import, ...]
    script: str
    text: str

    @property
    def changes_path(self) -> bool:
        """Return whether it may extend the module search path."""
        return any(change in self.text for change in _PATH_CHANGES)


@cache
def program(start: Start, folder: str, python_path: tuple[str, ...]) -> Program:
    """Find the imports of a program. folder: the working directory; python_path: the folders in its PYTHONPATH

    Imports in functions, in try and if statements, and in files with a syntax error are left out. A component of
    mldesigner also executes its function.
    """
    here = os.path.normpath(os.path.join(folder, start.folder))
    added = [os.path.normpath(os.path.join(here, entry)) for entry in (*start.python_path, *python_path)]
    found: list[Import] = []
    if start.script:
        script = os.path.normpath(os.path.join(here, start.script))
    else:
        script = (_files(start.module, (), [here, *added]) or [""])[-1]
    if start.module and not _files(start.module, (), [here, *added]):
        found.append(Import(start.module, ""))
    # Python finds modules beside its script, with `python -m` in the working directory.
    folders = [*([os.path.dirname(script)] if start.script else []), *([here] if start.module else []), *added]
    waiting, texts = [script], dict[str, str]()
    while waiting and len(texts) <= MAX_FILES:
        path = waiting.pop()
        if path in texts or path.endswith(".so") or not os.path.isfile(path):
            continue
        texts[path] = _read(path)
        for line, level, module, names in _statements(texts[path], start.function if path == script else None):
            package = path
            for _ in range(level):
                package = os.path.dirname(package)
            files = _files(module, names, [package] if level else folders)
            if not files and not level:
                found.append(Import(module, os.path.relpath(path, folder), line))
            waiting += files
    return Program(tuple(found), texts.get(script, ""), "\n".join(texts.values()))


def _files(module: str, names: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Return the files of a module, and of its submodules among `names`; for a module without a file, its folders. For
    a module that is not in the folders, return the files of its parents.

    module: "" for the package in the folders itself. For the runtime of this package, only its folder is returned
    """
    files: list[str] = []
    for part in filter(None, module.split(".")):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return files
        places = list(spec.submodule_search_locations or ())
        files += [spec.origin] if spec.origin else places
        if spec.name == "allranks":
            return places
        folders = places
    for name in names:
        spec = PathFinder.find_spec(name, folders) if folders else None
        files += [spec.origin] if spec and spec.origin else []
    return files


def _statements(text: str, function: str | None) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
    """Yield the imports that a file executes unconditionally: the line, the level of a relative one, the module, and
    the names that it imports from the module.

    function: for a script, the component of mldesigner that is executed, or ""; None for an imported module
    """
    for node in _certain_nodes(_parse(text).body, function):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, 0, alias.name, ()
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.level, node.module or "", tuple(alias.name for alias in node.names)


def _certain_nodes(body: Sequence[ast.stmt], function: str | None) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if function is None:
            continue
        if _is_main_block(node) or (isinstance(node, ast.FunctionDef) and function and _component_of(node) == function):
            yield from node.body


def _is_main_block(node: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in _IS_MAIN


def _component_of(node: ast.FunctionDef) -> str:
    """Return the name of the mldesigner component that a function defines."""
    keywords = [keyword for call in node.decorator_list if isinstance(call, ast.Call) for keyword in call.keywords]
    names = [keyword.value for keyword in keywords if keyword.arg == "name"]
    return next((str(name.value) for name in names if isinstance(name, ast.Constant)), node.name)


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # its own interpreter may be able to read it
        return ast.Module([], [])


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
