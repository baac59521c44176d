"""Find the user's code on the stack, and describe the exceptions that it raises."""

from __future__ import annotations

import contextlib
import site
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType

from allranks.errors import InputError, Problem
from allranks.sdk import validation_errors
from allranks.sdk.dsl_mistakes import explained
from allranks.sdk.paths import shown

_LIBRARIES = (
    *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    *site.getsitepackages(),
    site.getusersitepackages(),
)
_OWN = str(Path(__file__).parents[1])
_CELL = "#cell"


def execute(file: Path, module: ModuleType) -> None:
    """Execute a Python file in a module's namespace, without bytecode.

    Python takes bytecode for current if the file has changed in the same second and has the same size.
    """
    exec(compile(file.read_bytes(), file, "exec", dont_inherit=True), vars(module))


@dataclass(frozen=True)
class Line:
    """A line of the user's code.

    file: as messages name it
    cell: of a notebook, from 1; text cells are counted too, as in editors; 0: the file is not a notebook
    """

    file: str
    number: int
    cell: int = 0

    def __str__(self) -> str:
        return f"{self.file}, cell {self.cell}, line {self.number}" if self.cell else f"{self.file}:{self.number}"


def cell_file(notebook: Path, cell: int) -> str:
    """Return the name under which a notebook's cell is compiled."""
    return f"{notebook}{_CELL}{cell}"


def line(file: str, number: int) -> Line:
    """Return the line of a file, by the name under which it was compiled."""
    path, mark, cell = file.rpartition(_CELL)
    return Line(shown(path), number, int(cell)) if mark and cell.isdecimal() else Line(shown(file), number)


def is_users(file: str) -> bool:
    """Return whether a file is neither a library's nor ours."""
    return not file.startswith("<") and not _is_library(file) and not file.startswith(_OWN)


def caller(frame: FrameType | None, path: Path) -> Line | None:
    """Return the innermost line of the file on the stack, or else of the user's other code."""
    nearest = None
    while frame is not None:
        file = frame.f_code.co_filename
        if _is_of(file, path):
            return line(file, frame.f_lineno)
        if nearest is None and is_users(file):
            nearest = line(file, frame.f_lineno)
        frame = frame.f_back
    return nearest


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Convert exceptions of the user's code to InputError, with the file and line."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(problem(error, path)) from None


def problem(error: BaseException, path: Path) -> Problem:
    """Return the problem for an exception that the file's code raised."""
    if isinstance(error, SyntaxError) and error.filename and not _is_library(error.filename):
        return Problem(str(line(error.filename, error.lineno or 1)), f"it is not Python: {error.msg}", "Python")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    own = [frame for frame in frames if _is_of(frame.filename, path)] or frames
    place = str(line(own[-1].filename, own[-1].lineno or 1)) if own else shown(path)
    fix = ""
    if own and any(frame.name == "<module>" for frame in frames[frames.index(own[-1]) + 1 :]):
        fix = f"correct that file, which {place} imports"
        place = str(line(frames[-1].filename, frames[-1].lineno or 1))
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        fix = f"install what provides {package}, or put {package}.py beside the file"
        return Problem(place, f"there is no module {error.name}", "", fix, code="file-fails")
    if isinstance(error, ValueError) and "null bytes" in str(error):
        return Problem(place, f"it is not Python: {error}", "Python source text")
    if isinstance(error, SystemExit):
        expected = "a file that only defines pipelines when imported"
        return Problem(place, "it ends Python while it is read", expected, code="file-fails")
    problem = Problem(place, validation_errors.one_line(error), "", fix, code="file-fails")
    return explained(problem, error, path)


def _is_of(file: str, path: Path) -> bool:
    return file == str(path) or file.startswith(f"{path}{_CELL}")


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)
