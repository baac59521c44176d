"""Find launchers, programs and imported packages that a plan needs and this machine lacks."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from allranks.contract.commands import CHANGES, Start, simple_commands, starts
from allranks.errors import Problem
from allranks.images import rootfs
from allranks.local import interpreters, missing_modules, rank_environment, script_imports
from allranks.local.launchers.by_distribution import LAUNCHERS
from allranks.local.script_imports import Import, Program
from allranks.plan.graph import Plan, Step, Sweep
from allranks.plan.walk import steps, walk

WHERE = "this machine"
"""The beginning of `where` in these problems, because the user's files are not at fault."""

IN_CONTAINERS = ("none", "pytorch", "tensorflow")
"""Distributions that can start in a container: those without a launcher of their own."""

_SHOWN_STEPS = 3
_OWN_PACKAGES = ("allranks/runtime", "allranks_steps")
"""The package that `allranks.sdk.runtime_copy` adds to code."""

_StepProgram: TypeAlias = tuple[str, Step, Path, Start, Program]
"""A Python program of a step: the step's path, the step, its interpreter, how the command starts it, its imports."""

_User: TypeAlias = tuple[str, Step, str]
"""A step that needs a module: its path, the step, and the description of the need, for messages."""


def problems(plan: Plan) -> list[Problem]:
    """Return a problem for each requirement of the plan that this machine does not meet."""
    missing = (*missing_launchers(plan).values(), *_missing_modules(list(_programs(plan))))
    return [*_old_interpreters(plan), *missing, *_missing_samplers(plan), *_missing_programs(plan)]


def _old_interpreters(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each step whose Python is too old for the parts of allranks that it runs."""
    for path, step in steps(plan.graph):
        names = [name for name in _OWN_PACKAGES if step.code and os.path.isdir(os.path.join(step.code.folder, name))]
        needs = {f"{' and '.join(names)} in its code": interpreters.OLDEST} if names else {}
        if step.parallel is not None:
            needs["the program of a parallel step"] = interpreters.OLDEST_OF_WORKERS
        for what, minor in needs.items():
            python = interpreters.find(step.environment, plan.source)
            if interpreters.is_older(python, minor):
                found = f"Python {interpreters.version_of(python)}, with {what}"
                fix = "name a newer Python in the step's environment"
                yield Problem(f"{WHERE}, for step {path}{step.at}", found, f"Python 3.{minor} or later", fix)


def missing_launchers(plan: Plan) -> dict[str, Problem]:
    """Return, by path, a problem for each step whose launcher is missing on this machine."""
    found = {}
    for path, step in steps(plan.graph):
        kind, python = step.distribution.type, interpreters.find(step.environment, plan.source)
        launcher, search_path = LAUNCHERS[kind], rank_environment.search_path(os.environ, python)
        where = f"{WHERE}, for step {path}, key distribution.type{step.at}"
        if rootfs.of(python):
            if kind not in IN_CONTAINERS:
                text = f"{kind}, whose launcher allranks does not start in a container"
                fix = f"another environment for this step: run_in of allranks.yaml, {path}: venv"
                found[path] = Problem(where, text, " or ".join(IN_CONTAINERS), fix, code="missing-launcher")
        elif launcher.program and shutil.which(launcher.program, path=search_path) is None:
            text = f"{kind}, but this machine has no {launcher.program}"
            found[path] = Problem(where, text, launcher.software, launcher.fix, code="missing-launcher")
    return found


def _missing_modules(programs: Sequence[_StepProgram]) -> Iterator[Problem]:
    """Yield a problem for each missing module, whether it is in the code where Python does not look, or not at all."""
    in_code: dict[tuple[str, missing_modules.FoundInCode], list[_User]] = {}
    lacking: dict[Path, dict[str, list[_User]]] = {}
    for path, step, python, start, found in _lacking(programs):
        is_known = missing_modules.is_known(found.module)
        own = missing_modules.find_in_code(found.name, step.code, start, is_package=is_known)
        if own is not None:
            in_code.setdefault((found.module, own), []).append((path, step, str(found)))
            continue
        # Of packages with several modules, the first one that is imported.
        users = lacking.setdefault(python, {})
        name = next((name for name in users if name.partition(".")[0] == found.module), found.name)
        users.setdefault(name, []).append((path, step, f", which {found} needs"))
    for (module, own), modules in in_code.items():
        text = f"no module {module}, which {modules[0][2]} needs: it is {own.place}"
        yield Problem(_where(modules), text, "", own.fix, code="module-in-code")
    for python, users in lacking.items():
        for name, found_by in users.items():
            text = f"no Python package {name.partition('.')[0]}{found_by[0][2]}"
            fix = missing_modules.install(name, python)
            yield Problem(_where(found_by), text, "", fix, code="missing-package")


def _lacking(programs: Sequence[_StepProgram]) -> Iterator[tuple[str, Step, Path, Start, Import]]:
    """Yield the imports of modules that the interpreters of the steps do not have."""
    names: dict[Path, set[str]] = {}
    for _, _, python, _, program in programs:
        names.setdefault(python, set()).update(found.module for found in program.imports)
    missing = {python: missing_modules.missing(python, imported) for python, imported in names.items()}
    for path, step, python, start, program in programs:
        for found in program.imports:
            # A program that changes where modules are found may find others than this check.
            is_certain = not program.changes_path or missing_modules.is_known(found.module)
            if found.module in missing[python] and is_certain:
                yield path, step, python, start, found


def _where(users: Sequence[_User]) -> str:
    paths = list(dict.fromkeys(path for path, _, _ in users))
    shown = ", ".join(paths[:_SHOWN_STEPS])
    more = f" and {len(paths) - _SHOWN_STEPS} more" if len(paths) > _SHOWN_STEPS else ""
    return f"{WHERE}, for step{'s' * (len(paths) > 1)} {shown}{more}{users[0][1].at}"


def _missing_samplers(plan: Plan) -> Iterator[Problem]:
    for path, node, _ in walk(plan.graph):
        module = node.sampling.module if isinstance(node, Sweep) else ""
        if module and find_spec(module) is None:
            found = f"no Python package {module}, which samples the search space"
            fix = missing_modules.install(module, Path(sys.executable))
            yield Problem(f"{WHERE}, for step {path}", found, "", fix, code="missing-package")


_PROGRAMS = {
    "Rscript": "install R, with apt: r-base-core",
    "azcopy": "install AzCopy: https://aka.ms/downloadazcopy",
    "dotnet": "install .NET: https://dotnet.microsoft.com/download",
    "ffmpeg": "install it, with apt: ffmpeg",
    "java": "install a Java runtime, with apt: default-jre-headless",
    "julia": "install Julia: https://julialang.org/downloads",
    "node": "install Node.js, with apt: nodejs",
    **{name: f"pip install {name}" for name in ("accelerate", "dvc", "jupyter", "papermill", "streamlit")},
}
"""Programs that not every Linux has, and the command that installs each."""
_MAY_START = re.compile("|".join(_PROGRAMS))


def _missing_programs(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each program of a command that is not on the step's PATH. A command that installs something
    may install it."""
    for path, step in steps(plan.graph):
        python = interpreters.find(step.environment, plan.source)
        if rootfs.of(python):
            continue
        simple = simple_commands(step.command) if _MAY_START.search(step.command) else ()
        names = {each.program for each in simple}
        search_path = rank_environment.search_path(os.environ, python)
        fixes = {
            name: _PROGRAMS[name] for name in sorted(names & _PROGRAMS.keys() if names.isdisjoint(CHANGES) else ())
        }
        for start in starts(step.command):
            # The missing module of a launcher such as accelerate is reported as such.
            fixes.pop(start.program, None)
            package = start.module.partition(".")[0]
            if os.path.isabs(start.program):
                fixes[start.program] = f"use the one of the step's environment: {os.path.basename(start.program)}"
            elif package and not start.program.startswith("python") and not missing_modules.missing(python, [package]):
                fixes[start.program] = missing_modules.install(package, python)
        for name, fix in fixes.items():
            if shutil.which(name, path=search_path) is None:
                found = f"no program {name}, which the command starts"
                yield Problem(f"{WHERE}, for step {path}{step.at}", found, "", fix, code="missing-program")


def _programs(plan: Plan) -> Iterator[_StepProgram]:
    """Yield the Python programs of each step that run in the step's interpreter."""
    interpreter_of = cache(lambda environment: interpreters.find(environment, plan.source))
    for path, step in steps(plan.graph):
        python_path = step.environment_variables.get("PYTHONPATH", "")
        if not isinstance(python_path, str):  # it is not known before the step starts
            continue
        python = interpreter_of(step.environment)
        if rootfs.of(python):  # it cannot be asked from here
            continue
        search_path = rank_environment.search_path(os.environ, python)
        folder, folders = step.code.folder if step.code else os.devnull, python_path.split(os.pathsep)
        for start in starts(step.command):
            if _runs_in(start.program, python, search_path):
                yield path, step, python, start, script_imports.program(start, folder, tuple(filter(None, folders)))


@lru_cache(maxsize=4096)
def _runs_in(program: str, python: Path, search_path: str) -> bool:
    """Return whether a program of a command belongs to the interpreter. A name that is not found is assumed to."""
    found = shutil.which(program, path=search_path)
    return Path(found).parent == python.parent if found else os.sep not in program
