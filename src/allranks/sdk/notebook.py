"""A Jupyter notebook's cells, run in order as "Run all" does, without IPython.

Lines that only IPython reads are left out: shell lines (``!pip install``), help (``name?``) and magics, except for
those that a later cell may need: ``%%writefile``, ``%run``, ``%cd``, ``%time``, and ``%%time`` and ``%%capture``, whose
cells are run. The format is nbformat 4: https://nbformat.readthedocs.io/en/latest/format_description.html
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk.paths import shown
from allranks.sdk.user_code import cell_file

_MAGIC = "_allranks_magic"
_LINE_MAGIC = re.compile(r"(\s*)((?:[\w.,\s]+=\s*)?)([%!])(.*)")
_HELP = re.compile(r"\s*(\?\??\s*[\w.]+|[\w.]+\s*\?\??)\s*;?")
_RUN_CELL = ("time", "timeit", "capture", "prun")
"""The magics of a cell that run it as Python."""


@dataclass(frozen=True)
class Cell:
    """A cell of code. number: from 1, counted with the cells of text, as editors and linters count them."""

    number: int
    source: str


def cells(path: Path) -> list[Cell]:
    """Return a notebook's cells of code. Raise InputError if the file is no notebook of Python."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(Problem(shown(path), "it is not UTF-8", "a notebook")) from None
    except json.JSONDecodeError as error:
        found = f"it is not JSON: {error.msg}"
        fix = "save it again with Jupyter"
        raise InputError(Problem(f"{shown(path)}:{error.lineno}", found, "a notebook", fix)) from None
    listed: Any = tree.get("cells") if isinstance(tree, dict) else None
    if not isinstance(listed, list) or not all(isinstance(cell, dict) for cell in listed):
        expected = "a notebook of format 4, with a list of cells"
        fix = "open it with Jupyter and save it, which converts older formats"
        raise InputError(Problem(shown(path), "it has no cells", expected, fix))
    metadata = tree.get("metadata") or {}
    language = (metadata.get("kernelspec") or {}).get("language") or (metadata.get("language_info") or {}).get("name")
    if language and str(language).lower() not in ("python", "ipython"):
        raise InputError(Problem(shown(path), f"its cells are in {language}", "a notebook of Python"))
    return [
        Cell(number, _text(cell.get("source", "")))
        for number, cell in enumerate(listed, 1)
        if cell.get("cell_type") == "code"
    ]


def run(path: Path, module: ModuleType) -> None:
    """Run the cells in the module's namespace, one after the other. What they raise is not caught.

    Raise InputError if the file is no notebook of Python.
    """
    namespace = vars(module)
    namespace.setdefault("display", _nothing)
    namespace.setdefault("get_ipython", _Shell)
    namespace[_MAGIC] = lambda text: _line_magic(text, module)
    with _ipython():
        for cell in cells(path):
            _run_cell(cell, path, namespace)


def _run_cell(cell: Cell, path: Path, namespace: dict[str, Any]) -> None:
    source = cell.source
    first = next((place for place, text in enumerate(source.splitlines()) if text.strip()), 0)
    lines = source.splitlines()
    if lines and lines[first].startswith("%%"):
        name, _, argument = lines[first][2:].partition(" ")
        if name in ("writefile", "file"):
            _write_file(argument, "\n".join(lines[first + 1 :]) + "\n", namespace)
        if name not in _RUN_CELL:
            return
        lines[first] = ""
    file = cell_file(path, cell.number)
    code, text = _compiled("\n".join(lines), file)
    # So that tracebacks, and whoever asks for a function's source, find the lines. None: it never grows stale.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(code, namespace)


def _compiled(source: str, file: str) -> tuple[Any, str]:
    """Return the code of a cell, and its text as Python: each line that only IPython reads is replaced, and lines stay
    where they are. What Python reads is never looked at, such as a text of several lines that begin with %.

    Raise SyntaxError for what neither reads.
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
    """Return the line that Python stumbled over, or, where it says that a bracket or a quote before was not closed, the
    nearest one above."""
    for place in range(min(number, len(lines)) - 1, -1, -1):
        if _LINE_MAGIC.fullmatch(lines[place]) or _HELP.fullmatch(lines[place]):
            return place
    return None


def _replace(lines: list[str], place: int) -> None:
    """Replace a line that only IPython reads, with the lines that continue it."""
    end = place
    while lines[end].endswith("\\") and end + 1 < len(lines):
        end += 1
    whole = " ".join(text.rstrip("\\").strip() for text in lines[place + 1 : end + 1])
    match = _LINE_MAGIC.fullmatch(lines[place].rstrip("\\"))
    for other in range(place, end + 1):
        lines[other] = ""
    if match is None:
        return
    indent, target, kind, rest = match.groups()
    rest = f"{rest} {whole}".strip()
    if kind == "!":
        lines[place] = f"{indent}{target}[]" if target else f"{indent}pass"
    elif not target and (timed := re.fullmatch(r"time\s+(.*)", rest)):
        lines[place] = f"{indent}{timed[1]}"
    else:
        lines[place] = f"{indent}{target}{_MAGIC}({rest!r})"


def _line_magic(text: str, module: ModuleType) -> None:
    """What stands in place of a line such as ``%run ../common.ipynb``."""
    name, _, argument = text.partition(" ")
    namespace = vars(module)
    words = [_expanded(word, namespace) for word in shlex.split(argument)] if name in ("run", "cd") else []
    if name == "cd" and words:
        os.chdir(Path(words[0]).expanduser())
    if name == "run" and (files := [word for word in words if not word.startswith("-")]):
        path = Path(files[0])
        path = (path if path.suffix else path.with_suffix(".py")).absolute()
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {files[0]}")
        if path.suffix == ".ipynb":
            run(path, module)
        else:
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), namespace)


def _write_file(argument: str, text: str, namespace: dict[str, Any]) -> None:
    """Write what ``%%writefile [-a] PATH`` writes. A file that already says this is left alone."""
    words = shlex.split(argument)
    append = bool(words) and words[0] in ("-a", "--append")
    path = Path(_expanded(" ".join(words[1:] if append else words), namespace)).expanduser()
    if append:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    elif not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        path.write_text(text, encoding="utf-8")


def _expanded(text: str, namespace: dict[str, Any]) -> str:
    """Return a magic's argument, in which IPython puts the values of ``{expression}`` and ``$name``."""
    text = re.sub(r"\{([^{}]+)\}", lambda match: str(eval(match[1], namespace)), text)
    return re.sub(r"\$(\w+)", lambda match: str(namespace.get(match[1], match[0])), text)


def _text(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _nothing(*arguments: Any, **options: Any) -> None:
    """What shows something in a notebook."""


class _Shell:
    """What `get_ipython()` returns: every method does nothing."""

    config: Mapping[str, Any] = MappingProxyType({})  # the SDK asks it for the kernel that runs

    def __getattr__(self, name: str) -> Any:
        return _nothing


@contextlib.contextmanager
def _ipython() -> Iterator[None]:
    """Stand in for IPython's module `display` where IPython is not installed."""
    if "IPython" in sys.modules or importlib.util.find_spec("IPython") is not None:
        yield
        return
    names = ("IPython", "IPython.display", "IPython.core", "IPython.core.display")
    modules = {name: ModuleType(name) for name in names}
    for name, module in modules.items():
        vars(module).update({"__path__": [], "__getattr__": _shown, "get_ipython": _Shell})
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)


def _shown(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _nothing
