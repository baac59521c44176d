"""The starters of a run: which one serves the ranks of a step on an instance, if any."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from allranks.local import installed
from allranks.local.forkserver.imports import code, commands
from allranks.local.forkserver.imports.commands import Start
from allranks.local.forkserver.starts import import_variables, packages
from allranks.local.instances.programs import Program, PythonProgram, StarterSpec

_OWN = frozenset({"allranks", "allranks_steps", "__main__", "__init__", "__pycache__"})
"""Names that hide nothing: ranks always import the copies of these packages that are beside their script."""
_IMPORTS_MLFLOW = re.compile(r"^\s*(?:import|from)\s+mlflow\b", re.MULTILINE)


class StarterSpecs:
    """Decide which starter serves ranks. What a script imports is read once per run."""

    def __init__(self) -> None:
        self._modules: dict[tuple[str, Start, tuple[str, ...], Path, bool, bool], tuple[str, ...]] = {}
        self._specs: list[StarterSpec] = []

    def of_programs(
        self, programs: Sequence[Program], interpreter: Path, code: str = "", *, tracked: bool = False
    ) -> StarterSpec | None:
        """Return the starter for ranks of a step; None if they start cold.

        programs: the ranks, all with the same command
        code:     the folder with the step's code; "" for the ranks' working directory
        tracked:  whether the step has an MLflow run
        """
        if not programs or any(program.python is None for program in programs):
            return None
        environments = [effective(program) for program in programs]
        variables = import_variables.common(environments)
        python = programs[0].python
        if variables is None or python is None:
            return None
        modules = self._preloaded(python, environments[0], code or programs[0].folder, interpreter, tracked)
        return self._shared(StarterSpec(str(interpreter), variables, modules)) if modules else None

    def _shared(self, spec: StarterSpec) -> StarterSpec:
        """Return an earlier spec that serves as well, or else this one."""
        for other in self._specs:
            more = set(other.modules).difference(spec.modules)
            is_larger = set(spec.modules) <= set(other.modules) and all(map(_comes_with_torch, more))
            if is_larger and (other.interpreter, other.environment) == (spec.interpreter, spec.environment):
                return other
        self._specs.append(spec)
        return spec

    def _preloaded(
        self, python: PythonProgram, environment: Mapping[str, str], folder: str, interpreter: Path, tracked: bool
    ) -> tuple[str, ...]:
        start = commands.start_of(python.script, python.module, python.arguments)
        python_path = tuple(filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)))
        gpus = import_variables.sees_gpus(environment)
        key = folder, start, python_path, interpreter, gpus, tracked
        if key not in self._modules:
            modules = preloaded(start, folder, python_path, gpus=gpus, tracked=tracked)
            script_folder = os.path.join(folder, os.path.dirname(start.script))
            if modules and hides_installed({script_folder, folder, *python_path}, interpreter):
                modules = ()
            self._modules[key] = modules
        return self._modules[key]


def _comes_with_torch(module: str) -> bool:
    return module == "numpy" or module.startswith("torch.")


def effective(program: Program) -> dict[str, str]:
    """Return the environment of a program, with the variables that its command assigns."""
    return {**program.environment, **(program.python.variables if program.python else {})}


def hides_installed(folders: Iterable[str], interpreter: Path) -> bool:
    """Return whether a module in one of these folders has the name of one that the interpreter has installed,
    which a starter would have imported instead."""
    names = {name for folder in folders for name in _modules(folder)} - _OWN
    if not names:
        return False
    if not names.isdisjoint(sys.stdlib_module_names) or not names.isdisjoint(("sitecustomize", "usercustomize")):
        return True
    packages = [str(folder) for folder in installed.folders(interpreter)]
    return any(
        os.path.exists(f"{folder}/{name}{suffix}") for folder in packages for name in names for suffix in ("", ".py")
    )


def _modules(folder: str) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name, _, suffix = entry.name.partition(".")
                if suffix.endswith(("py", "so")) or os.path.exists(os.path.join(entry.path, "__init__.py")):
                    yield name
    except OSError:
        return


def preloaded(
    start: Start, folder: str, python_path: Sequence[str], *, gpus: bool, tracked: bool = False
) -> tuple[str, ...]:
    """Return the modules to import before a program is forked, in order; none if that is not worth a starter.

    PACKAGE:NAME stands for what a package imports when NAME is first used.

    folder:      the working directory of the program
    python_path: of its process
    gpus:        whether its process sees GPUs
    tracked:     whether it has an MLflow run
    """
    imported, text = code.names(start, folder, python_path)
    launcher = packages.LAUNCHERS.get(os.path.basename(start.program))
    names = {*imported, *filter(None, (start.module, launcher))}
    later: tuple[str, ...] = ()
    uses_runtime = _uses_runtime(names)
    if uses_runtime:
        names.update(packages.RUNTIME)
    if tracked and (uses_runtime or _IMPORTS_MLFLOW.search(text)):
        later = packages.TRACKED
    names.update(
        name
        for name, pattern in packages.ATTRIBUTES.items()
        if _has(names, name.partition(".")[0]) and re.search(pattern, text)
    )
    known = [
        package
        for name, package in packages.PRELOADED.items()
        if _has(names, name) and not (gpus and package.looks_for_gpus)
    ]
    if not later and not any(package.heavy for package in known):
        return ()
    modules = [module for package in known for module in package.modules]
    parts = [part for package in packages.LAZY if package in modules for part in _parts(package, names)]
    return tuple(dict.fromkeys([*modules, *parts, *later]))


def _parts(package: str, names: Iterable[str]) -> Iterator[str]:
    """Return what a script imports by name from a package of `packages.LAZY`, each as PACKAGE:NAME."""
    for part in sorted(name.removeprefix(f"{package}.") for name in names if name.startswith(f"{package}.")):
        if part.isidentifier():
            yield f"{package}:{part}"
            yield from (f"{package}:{need}" for use, need in packages.LAZY[package].items() if part.startswith(use))


def _uses_runtime(names: Iterable[str]) -> bool:
    """Return whether a script uses the part of the runtime that needs torch."""
    used = {name for name in names if name.startswith("allranks.runtime.")}
    if used:
        return not all(name.startswith(packages.RUNTIME_WITHOUT_TORCH) for name in used)
    return any(name in ("allranks.runtime", "allranks") for name in names)


def _has(names: Iterable[str], name: str) -> bool:
    return any(other == name or other.startswith(f"{name}.") for other in names)
