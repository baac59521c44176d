"""Run a Jupyter notebook's cells in order, as "Run all" does, without IPython.

Lines in IPython's own syntax are skipped: shell lines (``!pip install``), help (``name?``) and magics, except for
those that a later cell may need: ``%%writefile``, ``%run``, ``%cd``, ``%time``, and ``%%time`` and ``%%capture``, whose
cells are run. IPython's own transformer takes 0.36 s to import, and joins continued lines, after which an error names a
wrong line of its cell (measured with IPython 9).

The format is nbformat 4: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import linecache
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk import light_import
from allranks.sdk.paths import shown
from allranks.sdk.skipped_statements import SkippedStatements
from allranks.sdk.user_code import cell_file, line

_MAGIC = "_allranks_magic"
_LINE_MAGIC = re.compile(r"(\s*)((?:[\w.,\s]+=\s*)?)([%!])(.*)")
_SHELL = re.compile(r"^\s*(?:\w+\s*=\s*)?!(?!\s*(?:python3? -m )?pip\b)|^%%(?:bash|sh)\b", re.MULTILINE)
_HELP = re.compile(r"\s*(\?\??\s*[\w.]+|[\w.]+\s*\?\??)\s*;?")
_RUN_CELL = ("time", "timeit", "capture", "prun")
"""Cell magics that run the cell as Python."""


@dataclass(frozen=True)
class Cell:
    """A code cell. number: from 1; text cells are counted too, as in editors and linters."""

    number: int
    source: str


def cells(path: Path) -> list[Cell]:
    """Return a notebook's code cells. Raise InputError if the file is not a Python notebook."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(Problem(shown(path), "it is not UTF-8", "a notebook")) from None
    except json.JSONDecodeError as error:
        found = f"it is not JSON: {error.msg}"
        fix = "save it again with Jupyter"
        raise InputError(Problem(f"{shown(path)}:{error.lineno}", found, "a notebook", fix)) from None
    except RecursionError:
        fix = "save it again with Jupyter"
        found = "it is not JSON of a notebook: lists or objects are nested too deeply"
        raise InputError(Problem(shown(path), found, "a notebook", fix)) from None
    listed: Any = tree.get("cells") if isinstance(tree, dict) else None
    if not isinstance(listed, list) or not all(isinstance(cell, dict) for cell in listed):
        expected = "a notebook of format 4, with a list of cells"
        fix = "open it with Jupyter and save it, which converts older formats"
        raise InputError(Problem(shown(path), "it has no cells", expected, fix))
    metadata = _object(tree, "metadata")
    language = _object(metadata, "kernelspec").get("language") or _object(metadata, "language_info").get("name")
    if language and str(language).lower() not in ("python", "ipython"):
        raise InputError(Problem(shown(path), f"its cells are in {language}", "a notebook of Python"))
    return [
        Cell(number, _text(cell.get("source", "")))
        for number, cell in enumerate(listed, 1)
        if cell.get("cell_type") == "code"
    ]


def _object(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object of that name; an empty one if it is missing or something else."""
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def run(
    path: Path,
    module: ModuleType,
    skipped: SkippedStatements | None = None,
    after_cell: Callable[[], None] = lambda: None,
) -> None:
    """Run the cells in order in the module's namespace. Their exceptions are not caught.

    skipped:    receives the statements that this machine cannot execute; None: they raise
    after_cell: is called after each cell

    Raise InputError if the file is not a Python notebook.
    """
    namespace = vars(module)
    namespace.setdefault("display", _do_nothing)
    namespace.setdefault("get_ipython", _Shell)
    light_import.import_on_use({"logging": ("config", "handlers")})  # as after IPython's import
    namespace[_MAGIC] = lambda text: _line_magic(text, module, skipped)
    with _ipython():
        for cell in cells(path):
            _run_cell(cell, path, namespace, skipped)
            after_cell()


def _run_cell(cell: Cell, path: Path, namespace: dict[str, Any], skipped: SkippedStatements | None) -> None:
    source = cell.source
    first = next((place for place, text in enumerate(source.splitlines()) if text.strip()), 0)
    lines = source.splitlines()
    file = cell_file(path, cell.number)
    if skipped is not None and (shell := _SHELL.search(source)):
        skipped.shell.append(str(line(file, source.count("\n", 0, shell.end()) + 1)))
    if lines and lines[first].startswith("%%"):
        name, _, argument = lines[first][2:].partition(" ")
        if name in ("writefile", "file"):
            _write_file(argument, "\n".join(lines[first + 1 :]) + "\n", namespace)
        if name not in _RUN_CELL:
            return
        lines[first] = ""
    code, text = _compiled("\n".join(lines), file)
    # Tracebacks and inspect.getsource read the lines from here. None: the entry never expires.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    if skipped is None:
        exec(code, namespace)
    else:
        skipped.run(code, text, file, namespace)


def _compiled(source: str, file: str) -> tuple[Any, str]:
    """Return a cell's compiled code, and its text as Python.

    Lines in IPython's syntax are replaced without changing line numbers. Lines that Python accepts are not changed,
    such as lines of a string that begin with %. Raise SyntaxError for lines that neither accepts.
    """
    lines = source.split("\n")
    while True:
        text = "\n".join(lines)
        try:
            return compile(text, file, "exec", dont_inherit=True), text
        except SyntaxError as error:
            place = _replaceable(lines, error.lineno or 1)
            if place is None:
                raise
            _replace(lines, place)


def _replaceable(lines: list[str], number: int) -> int | None:
    """Return the index of the line that Python rejected, or of the nearest replaceable line above it, since Python may
    report a bracket or quote that was not closed before; None if there is none."""
    for place in range(min(number, len(lines)) - 1, -1, -1):
        if _LINE_MAGIC.fullmatch(lines[place]) or _HELP.fullmatch(lines[place]):
            return place
    return None


def _replace(lines: list[str], place: int) -> None:
    """Replace a line in IPython's syntax, with its continuation lines."""
    end = place
    while lines[end].endswith("\\") and end + 1 < len(lines):
        end += 1
    continuation = " ".join(text.rstrip("\\").strip() for text in lines[place + 1 : end + 1])
    match = _LINE_MAGIC.fullmatch(lines[place].rstrip("\\"))
    for other in range(place, end + 1):
        lines[other] = ""
    if match is None:
        return
    indent, target, kind, rest = match.groups()
    rest = f"{rest} {continuation}".strip()
    if kind == "!":
        lines[place] = f"{indent}{target}[]" if target else f"{indent}pass"
    elif not target and (timed := re.fullmatch(r"time\s+(.*)", rest)):
        lines[place] = f"{indent}{timed[1]}"
    else:
        lines[place] = f"{indent}{target}{_MAGIC}({rest!r})"


def _line_magic(text: str, module: ModuleType, skipped: SkippedStatements | None) -> None:
    """Run a line magic such as ``%run ../common.ipynb``."""
    name, _, argument = text.partition(" ")
    namespace = vars(module)
    words = [_expanded(word, namespace) for word in shlex.split(argument)] if name in ("run", "cd") else []
    if name == "cd" and words:
        os.chdir(Path(words[0]).expanduser())
    if name == "run" and (files := [word for word in words if not word.startswith("-")]):
        path = Path(files[0])
        path = (path if path.suffix else path.with_suffix(".py")).absolute()
        if not path.is_file():
            raise ValueError(f"there is no file {files[0]}")
        if path.suffix == ".ipynb":
            run(path, module, skipped)
        else:
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), namespace)


def _write_file(argument: str, text: str, namespace: dict[str, Any]) -> None:
    """Write the file of ``%%writefile [-a] PATH``. A file with the same content is not rewritten."""
    words = shlex.split(argument)
    append = bool(words) and words[0] in ("-a", "--append")
    path = Path(_expanded(" ".join(words[1:] if append else words), namespace)).expanduser()
    if append:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    elif not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        path.write_text(text, encoding="utf-8")


def _expanded(text: str, namespace: dict[str, Any]) -> str:
    """Return a magic's argument with ``{expression}`` and ``$name`` replaced by their values, as IPython does."""
    text = re.sub(r"\{([^{}]+)\}", lambda match: str(eval(match[1], namespace)), text)
    return re.sub(r"\$(\w+)", lambda match: str(namespace.get(match[1], match[0])), text)


def _text(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _do_nothing(*arguments: Any, **options: Any) -> None:
    """Do nothing, in place of a function that displays output."""


class _Shell:
    """The result of `get_ipython()`: every method does nothing."""

    config: Mapping[str, Any] = MappingProxyType({})  # the SDK reads the running kernel from it

    def __getattr__(self, name: str) -> Any:
        return _do_nothing


@contextlib.contextmanager
def _ipython() -> Iterator[None]:
    """Replace IPython's module `display` if IPython is not installed."""
    if "IPython" in sys.modules or importlib.util.find_spec("IPython") is not None:
        yield
        return
    names = ("IPython", "IPython.display", "IPython.core", "IPython.core.display")
    modules = {name: ModuleType(name) for name in names}
    for name, module in modules.items():
        vars(module).update({"__path__": [], "__getattr__": _module_attribute, "get_ipython": _Shell})
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)


def _module_attribute(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _do_nothing
