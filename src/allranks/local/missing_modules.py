"""Find the modules that an interpreter lacks, in a step's code or in packages. Nothing is imported."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from allranks.contract.commands import Start
from allranks.local import rank_environment, stacks
from allranks.plan.graph import Code
from allranks.sdk.paths import shown

START_SECONDS = 30
"""Time limit for an interpreter to answer. One that times out counts as having every module."""

_QUESTION = """
import importlib.util, json, sys
sys.path = [entry for entry in sys.path if entry]
def has(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return True
print(json.dumps([name for name in json.load(sys.stdin) if has(name)]))
"""

_found: dict[Path, set[str]] = {}
"""The modules that interpreters have. What one lacks may be installed at any time."""
_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+).*;\s*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"]")
_ALL = "dev"
"""The extra that contains the others."""
_OUTER = 4
"""Maximum number of folders above the code that are considered as packages that contain it."""


def missing(interpreter: Path, names: Iterable[str]) -> set[str]:
    """Return the top-level modules that an interpreter does not have. It is started once for all unknown names."""
    found = _found.setdefault(interpreter, set())
    if unknown := set(names) - found:
        found |= _found_by(interpreter, unknown)
    return unknown - found


def _found_by(interpreter: Path, names: set[str]) -> set[str]:
    try:
        answer = subprocess.run(
            [str(interpreter), "-c", _QUESTION],
            input=json.dumps(sorted(names)),
            env=rank_environment.machine_variables(os.environ, interpreter, 1),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=True,
        )
        return set(json.loads(answer.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return names


PACKAGES = {
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "attr": "attrs",
    "azureml": "azureml-core",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "jwt": "pyjwt",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    **{
        name: name.replace(".", "-")
        for name in ("azure.ai.ml", "azure.identity", "azure.storage.blob", "azureml.fsspec", "azureml.mlflow")
    },
}
"""Packages by the module that a script imports, where the names differ."""


def package_of(name: str) -> str:
    """Return the package that provides a module. name: the full name of the module, as far as it is known"""
    parts = name.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((PACKAGES[each] for each in names if each in PACKAGES), parts[0])


def install(name: str, interpreter: Path) -> str:
    """Return the command that installs a module's package. name: as for `package_of`"""
    package, module = package_of(name), name.partition(".")[0]
    if interpreter != Path(sys.executable):
        return f"{shown(str(interpreter))} -m pip install {package}"
    stack = stacks.BY_MODULE.get(module)
    if stack is not None and not stack.environment:
        return stack.install
    extras = _extras().get(package, ())
    return f'pip install "allranks[{extras[0]}]"' if len(extras) == 1 else f"pip install {package}"


def is_known(module: str) -> bool:
    """Return whether a module certainly belongs to a package: no folder of code has one of that name."""
    return module in stacks.BY_MODULE or module in PACKAGES or module in _extras()


@cache
def _extras() -> dict[str, list[str]]:
    """Return the extras of allranks that install a package, by package."""
    try:
        lines = requires("allranks") or []
    except PackageNotFoundError:  # not installed, but on PYTHONPATH
        return {}
    extras: dict[str, list[str]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match and match["extra"] != _ALL and match["package"] != "allranks":
            extras.setdefault(match["package"], []).append(match["extra"])
    return extras


def explain(name: str, message: str, code: Code | None, start: Start | None, interpreter: Path) -> tuple[str, str]:
    """Explain why a program did not find a module. Return the problem code and the fix. message: the whole text"""
    module, _, rest = name.partition(".")
    own = find_in_code(module, code, start, is_package=is_known(module))
    install_it = f"; to get it: {install(name, interpreter)}" if is_known(module) or name in PACKAGES else ""
    text = f"{module} is {own.place}: {own.fix}" if own else f"the Python of this step has no {name}{install_it}"
    if "is not a package" in message:
        text = f"{module} is a file, {module}.py, which hides the package of that name: rename the file"
    elif rest and name not in PACKAGES and package_of(name) == package_of(module):
        where = own.place.rpartition(",")[0] if own else "installed"
        text = f"{module} is {where}, and has no module {rest}: correct the import, or use a version that has it"
    return "module-in-code" if own else "missing-package", text


@dataclass(frozen=True)
class FoundInCode:
    """A module in the code that Python does not find. place: end of a sentence; fix: how the step can import it"""

    place: str
    fix: str


def find_in_code(name: str, code: Code | None, start: Start | None, *, is_package: bool = False) -> FoundInCode | None:
    """Return the location of a module; None if neither the code nor a folder above it has its name.

    name:       the full name of the module, as far as it is known, such as src.helpers
    start:      the program that imports it, if it is known
    is_package: whether a known package has this name too, as a folder of data may have
    """
    if code is None:
        return None
    top, _, rest = name.partition(".")
    found = sorted(
        (not _has_python(path), path.count(os.sep), path)
        for parent, folders, files in os.walk(code.folder)
        for path in (os.path.join(parent, each) for each in (*folders, *files) if each in (top, f"{top}.py"))
    )
    if found and not (is_package and found[0][0]):
        return _in_code(name, os.path.relpath(found[0][2], code.folder), start, has_python=not found[0][0])
    outer = [Path(code.source), *Path(code.source).parents][:_OUTER] if code.source and not is_package else []
    for folder in outer:
        if folder.name == top and (not rest or list(folder.glob(f"{rest.partition('.')[0]}*"))):
            fix = f"set code to {shown(folder.parent)}, and start the script from there, with python -m"
            return FoundInCode(f"{shown(folder)} itself, a folder that the uploaded code does not have", fix)
    return None


def _has_python(path: str) -> bool:
    return path.endswith(".py") or any(name.endswith(".py") for _, _, names in os.walk(path) for name in names)


def _in_code(name: str, path: str, start: Start | None, *, has_python: bool) -> FoundInCode:
    if not has_python:
        return FoundInCode(
            f"in the code, at {path}, without a Python file", "correct the import, or add the modules there"
        )
    start = start or Start("python")
    outer, module = os.path.dirname(path), start.module
    parts = os.path.splitext(os.path.normpath(os.path.join(start.folder, start.script)))[0].split("/")
    fix = f"write PYTHONPATH={os.path.relpath(outer or '.', start.folder or '.')} in front of the program"
    if module and module.partition(".")[0] == name.partition(".")[0]:
        fix = f"start it with python -m {'.'.join((*Path(outer).parts, module))}, or {fix}"
    elif start.script and not module and not outer and all(part.isidentifier() for part in parts):
        fix = f"start it{' without cd,' if start.folder else ''} with python -m {'.'.join(parts)}, or {fix}"
    return FoundInCode(f"in the code, at {path}, where Python does not look", fix)
