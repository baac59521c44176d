"""Upload the runtime, and the modules that the steps' programs share, with code that uses them.

The runtime part of this package (the files that its `.amlignore` does not exclude) is copied next to code that imports
it, as the folder `allranks`; so are the modules of the package `allranks_steps` that the code imports, with their own
imports. Code that contains a package of that name, for example by an additional include, keeps it.
"""

import ast
import functools
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.sdk.files import FileList, list_path
from allranks.sdk.upload_exclusions import rules_among

NAME = "allranks"
STEPS = "allranks_steps"
_PACKAGE = Path(__file__).resolve().parents[1]
_PARTS = ("contract", "errors", "hardware", "runtime")
_NAMES = ("", "*", "__version__", "InputError", "Problem")
"""Names in the package itself that work without its other parts. "" is the package itself."""
_IN_COMMAND = re.compile(rf"\b{NAME}\.(?:{'|'.join(_PARTS)})\b|\b(?:import|from)\s+{NAME}\b")
_IMPORT = re.compile(rf"^\s*(?:import|from)\s+({NAME}|{STEPS})\b", re.MULTILINE)
_SHELL = (".sh", ".bash")
_parser = threading.Lock()


def with_runtime(code: FileList, command: str, where: str) -> FileList:
    """Return the files of code, with the runtime and the modules of `allranks_steps` that the code or the command uses
    and the code does not contain.

    where: the place, for messages

    Raise InputError if the code's ignore file excludes one of the added files: Azure ML's tools, which read the ignore
    file of an exported folder, would not upload it.
    """
    if not code.files:
        return code
    modules = {NAME} if command_uses_runtime(command) else set()
    for file in code.files.items():
        modules |= _imports(file)
    added: dict[str, Path] = {}
    if not _contains_package(code, STEPS):
        added = _required_steps(modules)
        modules = modules.union(*map(_imports_of_step, added))
    if any(map(_is_in_runtime, modules)) and not _contains_package(code, NAME):
        added |= _files(_PACKAGE, NAME)
    if not added:
        return code
    rules = rules_among(code.files)
    if ignored := [name for name in added if rules.exclude(name)]:
        found = f"{rules.file} excludes {', '.join(ignored[:3])}{' and more' if len(ignored) > 3 else ''}"
        package = ignored[0].partition("/")[0]
        expected = f"all of {package}, which the code imports and which is uploaded with it"
        raise InputError(Problem(where, found, expected, f"add a last line to {rules.file}: !/{package}/**"))
    return replace(code, files=dict(sorted({**code.files, **added}.items())))


def _contains_package(code: FileList, name: str) -> bool:
    return f"{name}.py" in code.files or f"{name}/__init__.py" in code.files


@functools.cache
def _files(folder: Path, name: str) -> Mapping[str, Path]:
    """Return the files of a package of that name, which do not change during this process."""
    return list_path(folder, str(folder)).below(name).files


def _steps() -> Mapping[str, Path]:
    return _files(steps_parent() / STEPS, STEPS)


def steps_parent() -> Path:
    """Return the parent folder of `allranks_steps`, in a wheel or in the repository."""
    installed = _PACKAGE.parent
    return installed if (installed / STEPS).is_dir() else _PACKAGE.parents[1] / "components/shared"


def _required_steps(modules: Iterable[str]) -> dict[str, Path]:
    """Return the files of `allranks_steps` that are needed to import these modules, and the data beside them.

    Changes of other files affect neither the reuse nor the version of a component.
    """
    needed: dict[str, Path] = {}
    waiting = [module for module in modules if module.partition(".")[0] == STEPS]
    while waiting:
        parts = waiting.pop().split(".")
        stems = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        for name in (f"{stem}{end}" for stem in stems for end in ("/__init__.py", ".py")):
            if name in _steps() and name not in needed:
                needed[name] = _steps()[name]
                waiting += (each for each in _imports_of_step(name) if each.startswith(STEPS))
    folders = {os.path.dirname(name) for name in needed}
    data = {name: path for name, path in _steps().items() if not name.endswith(".py")}
    return needed | {name: path for name, path in data.items() if os.path.dirname(name) in folders}


@functools.cache
def _imports_of_step(name: str) -> frozenset[str]:
    return _imports((name, _steps()[name]))


def command_uses_runtime(command: str) -> bool:
    """Return whether a command names the runtime, as `python -m allranks.runtime train.py` does."""
    return bool(_IN_COMMAND.search(command))


def _imports(file: tuple[str, Path]) -> frozenset[str]:
    """Return the modules, or names in modules, that a file imports."""
    name, path = file
    if not name.endswith((".py", *_SHELL)):
        return frozenset()
    content = path.read_bytes()
    if NAME.encode() not in content:
        return frozenset()
    text = content.decode("utf-8", errors="replace")
    if name.endswith(_SHELL):
        return frozenset({NAME} if command_uses_runtime(text) else ())
    try:
        return frozenset(_imported(parsed(text)))
    except (SyntaxError, ValueError, RecursionError):
        # It may be written for another version of Python.
        found = set(_IMPORT.findall(text))
        steps = (name.removesuffix(".py").replace("/", ".") for name in _steps() if STEPS in found)
        return frozenset((*found, *steps))


def parsed(text: str) -> ast.Module:
    """Return the tree of Python source. Raise what `ast.parse` raises.

    The parser of CPython 3.11 counts the depth of the tree for all threads together, and raises SystemError if a second
    one parses at the same time (python/cpython#106905).
    """
    with _parser:
        return ast.parse(text)


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
