"""The modules that a starter imports for a program: those of known packages that the program imports in any case."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from allranks.local.imports import code
from allranks.local.imports.commands import Start
from allranks.local.starts import packages

_IMPORTS_MLFLOW = re.compile(r"^\s*(?:import|from)\s+mlflow\b", re.MULTILINE)


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
