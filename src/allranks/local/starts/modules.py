"""The modules that a starter imports for a program: those of known packages that the program imports in any case."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from allranks.local.imports import code
from allranks.local.imports.commands import Start
from allranks.local.starts.packages import ATTRIBUTES, LAUNCHERS, PRELOADED, RUNTIME, RUNTIME_WITHOUT_TORCH, TRACKED

_IMPORTS_MLFLOW = re.compile(r"^\s*(?:import|from)\s+mlflow\b", re.MULTILINE)


def preloaded(
    start: Start, folder: str, python_path: Sequence[str], *, gpus: bool, tracked: bool = False
) -> tuple[str, ...]:
    """Return the modules to import before a program is forked, in order; none if that is not worth a starter.

    folder:      the working directory of the program
    python_path: of its process
    gpus:        whether its process sees GPUs
    tracked:     whether it has an MLflow run
    """
    imported, text = code.names(start, folder, python_path)
    launcher = LAUNCHERS.get(os.path.basename(start.program))
    names = {*imported, *filter(None, (start.module, launcher))}
    later: tuple[str, ...] = ()
    uses_runtime = _uses_runtime(names)
    if uses_runtime:
        names.update(RUNTIME)
    if tracked and (uses_runtime or _IMPORTS_MLFLOW.search(text)):
        later = TRACKED
    if _has(names, "torch"):
        names.update(name for name, pattern in ATTRIBUTES.items() if re.search(pattern, text))
    packages = [
        package for name, package in PRELOADED.items() if _has(names, name) and not (gpus and package.looks_for_gpus)
    ]
    if not later and not any(package.heavy for package in packages):
        return ()
    return tuple(dict.fromkeys([*(module for package in packages for module in package.modules), *later]))


def _uses_runtime(names: Iterable[str]) -> bool:
    """Return whether a script uses the part of the runtime that needs torch."""
    used = {name for name in names if name.startswith("allranks.runtime.")}
    if used:
        return not all(name.startswith(RUNTIME_WITHOUT_TORCH) for name in used)
    return any(name in ("allranks.runtime", "allranks") for name in names)


def _has(names: Iterable[str], name: str) -> bool:
    return any(other == name or other.startswith(f"{name}.") for other in names)
