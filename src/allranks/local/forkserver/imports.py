"""Find the modules that a Python program imports at its start: the imports of its script, and of the modules in its own
folders that the script imports."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from allranks.contract.commands import Start

MAX_FILES = 500
"""Maximum files of a program that are read. Of a larger one, only the first ones are."""

_IS_MAIN = ("__name__ == '__main__'", "'__main__' == __name__")
_PATH_CHANGES = ("sys.path", "addsitedir", "sys.meta_path")

_Statement: TypeAlias = tuple[int, int, str, tuple[str, ...]]
"""An import: its line, the level of a relative one, the module, and the names that it imports from the module."""


@dataclass(frozen=True)
class Import:
    """An import of a module that is not in the program's own folders.

    module: its top-level name
    name:   its name, with the packages that it is in
    file:   relative to the program's folder; "" for the command itself
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
    """What a program imports.

    imports:      of other modules, which it executes unconditionally
    changes_path: whether it may look for modules in more places
    """

    imports: tuple[Import, ...]
    changes_path: bool


def program(start: Start, folder: str, python_path: Sequence[str]) -> Program:
    """Return what a program imports. folder: the working directory; python_path: of its process

    Imports in functions, in try and if statements, and in files with a syntax error are left out. A component of
    mldesigner also executes its function.
    """

    def certain(text: str, is_script: bool) -> Iterator[_Statement]:
        return _certain_statements(text, start.function) if is_script else _certain_statements(text)

    found = list(_of_command(start, folder, python_path))
    changes_path = False
    for text, outer in _walk(start, folder, python_path, certain):
        found += outer
        changes_path = changes_path or any(change in text for change in _PATH_CHANGES)
    return Program(tuple(found), changes_path)


def names(start: Start, folder: str, python_path: Sequence[str]) -> tuple[frozenset[str], str]:
    """Return the full names that a program always imports from other modules, such as torch.nn.Linear, and the text of
    its own files.

    They include the imports in functions that its script calls, or passes to a call, when it is run. Those of this
    package are included too.
    """
    statements: list[_Statement] = []
    texts: list[str] = []
    others = {"allranks"}

    def certain(text: str, is_script: bool) -> Iterator[_Statement]:
        texts.append(text)
        found = [*_certain_statements(text, start.function if is_script else None, calls=is_script)]
        statements.extend(found)
        return iter(found)

    for _, outer in _walk(start, folder, python_path, certain):
        others.update(found.module for found in outer)
    full = {
        name
        for _, level, module, imported in statements
        if not level and module.partition(".")[0] in others
        for name in (module, *(f"{module}.{name}" for name in imported))
    }
    return frozenset(full), "\n".join(texts)


def _of_command(start: Start, folder: str, python_path: Sequence[str]) -> Iterator[Import]:
    folders = [os.path.join(folder, start.folder, entry) for entry in ("", *start.python_path, *python_path)]
    if start.module and not _Modules().files(start.module, (), folders):
        yield Import(start.module, "")


def _walk(
    start: Start, folder: str, python_path: Sequence[str], statements: Callable[[str, bool], Iterable[_Statement]]
) -> Iterator[tuple[str, list[Import]]]:
    """Yield the text of the script and of each of the program's own modules that it imports, and what it imports from
    elsewhere.

    statements: returns the imports of a text; its second argument is whether it is that of the script
    """
    modules = _Modules()
    here = os.path.normpath(os.path.join(folder, start.folder))
    added = [os.path.normpath(os.path.join(here, entry)) for entry in (*start.python_path, *python_path)]
    if start.script:
        script = os.path.normpath(os.path.join(here, start.script))
        waiting = [script] if os.path.isfile(script) else []
    else:
        waiting = modules.files(start.module, (), [here, *added])[-1:]
        script = waiting[0] if waiting else ""
    # Python finds modules beside its script, with `python -m` in the working directory.
    folders = [*([os.path.dirname(script)] if start.script else []), *([here] if start.module else []), *added]
    seen = set(waiting)
    while waiting and len(seen) <= MAX_FILES:
        path = waiting.pop()
        text = _read(path)
        outer = []
        for line, level, module, names in statements(text, path == script):
            if level:
                package = path
                for _ in range(level):
                    package = os.path.dirname(package)
                files = modules.files(module, names, [package]) if module else modules.each(names, package)
            else:
                files = modules.files(module, names, folders)
            if not files and not level:
                outer.append(Import(module, os.path.relpath(path, folder), line))
            new = [file for file in files if file not in seen and file.endswith(".py")]
            seen.update(new)
            waiting += new
        yield text, outer


class _Modules:
    """Find the files of modules. Each folder is listed once."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, list[str]]] = {}

    def files(self, module: str, names: Sequence[str], folders: Sequence[str]) -> list[str]:
        """Return the files of a module, and of those names of it that are modules, in the first folder that has it;
        none if no folder has it. The runtime of this package is known: of it, return only the folder."""
        top, *rest = module.split(".")
        for folder in folders:
            if top not in self._of(folder):
                continue
            path = os.path.join(folder, top)
            if top == "allranks":
                return [path]
            files = self.module(path)
            for part in rest:
                path = os.path.join(path, part)
                files += self.module(path)
            return [*files, *self.each(names, path)] or [path]
        return []

    def each(self, names: Sequence[str], package: str) -> list[str]:
        """Return the files of the names that are modules of a package."""
        return [file for name in names for file in self.module(os.path.join(package, name))]

    def module(self, path: str) -> list[str]:
        """Return the file of a module, or of the package of that name. path: without a suffix"""
        folder, name = os.path.split(path)
        for suffix in self._of(folder).get(name, ()):
            if suffix:
                return [f"{path}{suffix}"]
            if "__init__" in self._of(path):
                return [os.path.join(path, "__init__.py")]
        return []

    def _of(self, folder: str) -> dict[str, list[str]]:
        """Return the importable names in a folder, each with its suffixes, "" for a folder first."""
        if folder not in self._entries:
            found: dict[str, list[str]] = {}
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        name, dot, suffix = entry.name.partition(".")
                        if entry.name.endswith((".py", ".so", ".pyc")) or (not dot and entry.is_dir()):
                            found.setdefault(name, []).append(f"{dot}{suffix}")
            except OSError:
                pass
            self._entries[folder] = {name: sorted(suffixes) for name, suffixes in found.items()}
        return self._entries[folder]


def _certain_statements(text: str, function: str | None = None, *, calls: bool = False) -> Iterator[_Statement]:
    """Yield the imports that a file executes unconditionally.

    function: for a script, the component of mldesigner that is executed, or ""; None for an imported module
    calls:    whether functions that the script calls when it is run count as executed to their end
    """
    tree = _parsed(text)
    nodes = list(_certain_nodes(tree.body, function))
    if calls:
        nodes += _called(tree.body)
    for node in nodes:
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


def _called(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of the functions that a script names when it is run."""
    functions = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    run = [node for node in body if isinstance(node, ast.Expr) or _is_main_block(node)]
    named = {name.id for node in run for name in ast.walk(node) if isinstance(name, ast.Name)}
    for name in sorted(named & functions.keys()):
        yield from functions[name].body


def _is_main_block(node: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in _IS_MAIN


def _component_of(node: ast.FunctionDef) -> str:
    """Return the name of the mldesigner component that a function defines."""
    keywords = [keyword for call in node.decorator_list if isinstance(call, ast.Call) for keyword in call.keywords]
    names = [keyword.value for keyword in keywords if keyword.arg == "name"]
    return next((str(name.value) for name in names if isinstance(name, ast.Constant)), node.name)


def _parsed(text: str) -> ast.Module:
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
