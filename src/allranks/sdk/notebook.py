"""Run a Jupyter notebook's cells in order, as "Run all" does, without IPython.

Lines in IPython's syntax are skipped: shell lines (``!pip install``), help (``name?``) and magics, except those that a
later cell may need: ``%%writefile``, ``%run``, ``%cd``, ``%time``, and ``%%time`` and ``%%capture``, whose cells are
run. IPython's transformer is not used: it takes 0.36 s to import, and joins continued lines, so that errors name wrong
lines (measured with IPython 9).

Notebooks often download data or plot results around the cells that make the job. Statements that need a package, a
network or a file which this machine lacks are skipped. The names that a skipped statement would have set are removed,
so that no later statement uses an earlier value in their place: it is skipped as well. So is a statement that fails
after them outside of azure-ai-ml, since it may read what they would have written.

The format is nbformat 4: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import linecache
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType
from typing import Any

from allranks.errors import InputError, Level, Problem
from allranks.sdk import internals, light_import, user_code
from allranks.sdk.paths import shown
from allranks.sdk.user_code import cell_file, line

_MAGIC = "_allranks_magic"
_LINE_MAGIC = re.compile(r"(\s*)((?:[\w.,\s]+=\s*)?)([%!])(.*)")
_SHELL = re.compile(r"^\s*(?:\w+\s*=\s*)?!(?!\s*(?:python3? -m )?pip\b)|^%%(?:bash|sh)\b", re.MULTILINE)
_HELP = re.compile(r"\s*(\?\??\s*[\w.]+|[\w.]+\s*\?\??)\s*;?")
_RUN_CELL = ("time", "timeit", "capture", "prun")
"""Cell magics that run the cell as Python."""


def cells(path: Path) -> dict[int, str]:
    """Return the sources of a notebook's code cells, by number from 1. Text cells are counted too, as in editors and
    linters. Raise InputError if the file is not a Python notebook."""
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
    return {
        number: "".join(map(str, cell.get("source", "")))  # a text, or a list of lines
        for number, cell in enumerate(listed, 1)
        if cell.get("cell_type") == "code"
    }


def _object(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object of that name; an empty one if it is missing or not an object."""
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def run(
    path: Path,
    module: ModuleType,
    skipped: SkippedStatements | None = None,
    after_cell: Callable[[], None] = lambda: None,
) -> None:
    """Run the cells in order in the module's namespace. Their exceptions are not caught.

    skipped:    records the statements that this machine cannot execute; None to let them raise
    after_cell: called after each cell

    Raise InputError if the file is not a Python notebook.
    """
    namespace = vars(module)
    namespace.setdefault("display", _do_nothing)
    namespace.setdefault("get_ipython", _Shell)
    light_import.import_on_use({"logging": ("config", "handlers")})  # as after IPython's import
    namespace[_MAGIC] = lambda text: _line_magic(text, module, skipped)
    with _ipython():
        for number, source in cells(path).items():
            _run_cell(source, cell_file(path, number), namespace, skipped)
            after_cell()


def _run_cell(source: str, file: str, namespace: dict[str, Any], skipped: SkippedStatements | None) -> None:
    """Run a cell. file: the name under which it is compiled"""
    first = next((place for place, text in enumerate(source.splitlines()) if text.strip()), 0)
    lines = source.splitlines()
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

    Lines in IPython's syntax are replaced without changing line numbers. Lines that Python accepts, such as lines of a
    string that begin with %, do not change. Raise SyntaxError for any other line.
    """
    lines = source.split("\n")
    while True:
        text = "\n".join(lines)
        try:
            return compile(text, file, "exec", dont_inherit=True), text
        except SyntaxError as error:
            # Python may report a line below an unclosed bracket or quote.
            above = reversed(range(min(error.lineno or 1, len(lines))))
            place = next((at for at in above if _LINE_MAGIC.fullmatch(lines[at]) or _HELP.fullmatch(lines[at])), None)
            if place is None:
                raise
            _replace(lines, place)


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


def _do_nothing(*arguments: Any, **options: Any) -> None:
    """Do nothing, in place of a function that displays output."""


class _Shell:
    """The result of `get_ipython()`, whose methods do nothing."""

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


_COMMAND = "os.system"
_LACKS = {"ConnectionError", "TimeoutError", "URLError", "gaierror", "ProxyError", "ImportError", "CalledProcessError"}
"""Names of exceptions, or of their bases, that are raised if this machine lacks a package, a network or a program."""


@dataclass(frozen=True)
class SkippedStatements:
    """The statements of a notebook that were skipped.

    applies:  returns whether statements may be skipped now; otherwise their exceptions are raised
    problems: why each statement cannot be executed here; a warning for an import that nothing has used
    lost:     index of the problem by the names that were not set; _COMMAND for a failed command
    shell:    places of shell lines, which are never executed
    """

    path: Path
    applies: Callable[[], bool]
    problems: list[Problem] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    shell: list[str] = field(default_factory=list)

    def run(self, code: CodeType, text: str, file: str, namespace: dict[str, Any]) -> None:
        """Execute the code of a cell, except statements that this machine cannot execute.

        text: the cell as Python
        file: the name under which it was compiled
        """
        statements = ast.parse(text).body
        future = [each for each in statements if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
        while True:
            try:
                with internals.replaced(os, "system", partial(self._system, os.system)):
                    exec(code, namespace)
                return
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                line = next(frame.lineno or 0 for frame in frames if frame.filename == file)
                failed = [each for each in statements if _first(each) <= line <= (each.end_lineno or 0)]
                if not self._skip(error, all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in failed)):
                    raise
                for name in {name for each in failed for name in _set_by(each)}:
                    self.lost[name] = self.lost.get(getattr(error, "name", ""), len(self.problems) - 1)
                    namespace.pop(name, None)
                statements = [each for each in statements if _first(each) > line]
                code = compile(ast.Module([*future, *statements], []), file, "exec", dont_inherit=True)

    def required(self) -> list[Problem]:
        """Return the problems of skipped statements whose results may be needed."""
        return [problem for problem in self.problems if problem.level is not Level.WARNING]

    def _system(self, system: Callable[[str], int], command: str) -> int:
        """Run a command like `os.system`. Record a failure, which may make a later statement raise."""
        code = system(command)
        if code and self.applies():
            self.lost[_COMMAND] = len(self.problems)
            where = str(user_code.caller(sys._getframe(1), self.path))
            found = f"the command {command} ended with exit code {os.waitstatus_to_exitcode(code)}"
            self.problems.append(Problem(where, found, code="file-fails", level=Level.WARNING))
        return code

    def _skip(self, error: Exception, imports: bool) -> bool:
        """Return whether to skip the statement that raised. Add the reason, unless it is known."""
        if not self.applies():
            return False
        innermost = traceback.extract_tb(error.__traceback__)[-1]
        is_raised = user_code.is_users(innermost.filename) and (innermost.line or "").startswith("raise ")
        used = error.name if isinstance(error, NameError) else _COMMAND if is_raised else None
        if used in self.lost:
            index = self.lost[used]
            self.problems[index] = replace(self.problems[index], level=Level.MACHINE)
            return True
        problem = user_code.problem(error, self.path)
        is_own = used or is_raised or any(part in innermost.filename for part in ("/azure/ai/ml/", "/allranks/sdk/"))
        if isinstance(error, FileNotFoundError) and (self.shell or self.required()):
            fix = f"run the shell lines that make it: {self.shell[-1]}" if self.shell else problem.fix
            problem = replace(problem, fix=fix)
        elif not _is_of_machine(error) and (is_own or not self.required()):
            return False
        self.problems.append(replace(problem, level=Level.WARNING if imports else Level.MACHINE))
        return True


def _is_of_machine(error: BaseException | None) -> bool:
    while error is not None:
        if _LACKS & {kind.__name__ for kind in type(error).__mro__}:
            return True
        error = error.__cause__ or error.__context__
    return False


def _first(statement: ast.stmt) -> int:
    """Return the first line of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _set_by(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
