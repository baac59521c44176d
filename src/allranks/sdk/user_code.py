"""Find the user's code on the stack, and convert its exceptions to problems."""

import contextlib
import re
import site
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType

from allranks.errors import InputError, Location, Problem, did_you_mean
from allranks.sdk import bounded_yaml, validation_errors
from allranks.sdk.paths import shown

_LIBRARIES = (
    *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    *site.getsitepackages(),
    site.getusersitepackages(),
)
_OWN = str(Path(__file__).parents[1])
_CELL = "#cell"


def execute(file: Path, module: ModuleType) -> None:
    """Execute a Python file in a module's namespace, without a bytecode cache.

    Python considers a cache valid if the file changed within the same second and has the same size.
    """
    exec(compile(file.read_bytes(), file, "exec", dont_inherit=True), vars(module))


def cell_file(notebook: Path, cell: int) -> str:
    """Return the file name with which a notebook's cell is compiled."""
    return f"{notebook}{_CELL}{cell}"


def line(file: str, number: int) -> Location:
    """Return a location, given the file name with which the code was compiled."""
    path, mark, cell = file.rpartition(_CELL)
    return Location(shown(path), number, int(cell)) if mark and cell.isdecimal() else Location(shown(file), number)


def is_users(file: str) -> bool:
    """Return whether a file is the user's: not of a library, nor of allranks."""
    return not file.startswith("<") and not _is_library(file) and not file.startswith(_OWN)


def caller(frame: FrameType | None, path: Path) -> Location | None:
    """Return the innermost line of the file on the stack, else of other user code; None if there is none."""
    nearest = None
    while frame is not None:
        file = frame.f_code.co_filename
        if _is_from(file, path):
            return line(file, frame.f_lineno)
        if nearest is None and is_users(file):
            nearest = line(file, frame.f_lineno)
        frame = frame.f_back
    return nearest


@contextlib.contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """Convert exceptions of the user's code to InputError, with the file and line."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(problem(error, path)) from None


def problem(error: BaseException, path: Path) -> Problem:
    """Return the problem for an exception of the file's code."""
    if isinstance(error, SyntaxError) and error.filename and not _is_library(error.filename):
        return Problem(str(line(error.filename, error.lineno or 1)), f"it is not Python: {error.msg}", "Python")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    own = [frame for frame in frames if _is_from(frame.filename, path)] or frames
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


def _is_from(file: str, path: Path) -> bool:
    return file == str(path) or file.startswith(f"{path}{_CELL}")


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)


def explained(problem: Problem, error: BaseException, file: Path) -> Problem:
    """Return the problem, explained if the message of azure-ai-ml is known. file: the user's"""
    known = _keys(error)
    if isinstance(error, KeyError) and known:
        name = str(error.args[0])
        fix = did_you_mean(name, known, "remove it")
        return replace(problem, found=f"there is no input {name}", expected=f"one of {', '.join(known)}", fix=fix)
    for row in bounded_yaml.load_file(Path(__file__).with_name("sdk_messages.yaml")):
        match = re.search(row["pattern"], problem.found) or re.search(row["pattern"], " ".join(str(error).split()))
        if match is None:
            continue
        words = match.groupdict()
        names = re.findall(r"'(\w+)'", words.get("known") or "") or [words.get("known") or ""]
        name = words.get("name") or ""
        valid = re.sub(r"\W", "_", name, flags=re.ASCII).lower()
        words |= {"known": ", ".join(names), "near": did_you_mean(name, names, "remove it"), "valid": valid}
        found, expected, fix = (row[key].format_map(words) for key in ("found", "expected", "fix"))
        return replace(problem, where=_naming_line(problem.where, file, name), found=found, expected=expected, fix=fix)
    return problem


def _keys(error: BaseException) -> list[str]:
    """Return the names of the existing inputs, if the SDK failed to find one."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    owner = trace.tb_frame.f_locals.get("self") if trace else None
    is_inputs = isinstance(owner, dict) and type(owner).__module__.startswith("azure.ai.ml")
    return [str(name) for name in owner or ()] if is_inputs else []


def _naming_line(where: str, file: Path, name: str) -> str:
    """Return the line that names a step, if the SDK reported the step after the function returned."""
    if ":" in where or file.suffix != ".py" or not name:
        return where
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    naming = rf"^\s*{re.escape(name)}\s*=|=\s*[\"']{re.escape(name)}[\"']"
    for flag in (0, re.IGNORECASE):  # the SDK converts a name that was set to lower case
        for number, text in enumerate(lines, 1):
            if re.search(naming, text, flag):
                return f"{where}:{number}"
    return where
