"""Find modules of a program that hide installed ones. A starter would have imported the installed ones instead."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from allranks.local import installed

OWN = frozenset({"allranks", "allranks_steps", "__main__", "__init__", "__pycache__"})
"""Names that hide nothing: ranks always import the copies of these packages that are beside their script."""


def hides_installed(folders: Iterable[str], interpreter: Path) -> bool:
    """Return whether a module in one of these folders has the name of one that the interpreter has installed."""
    names = {name for folder in folders for name in _modules(folder)} - OWN
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
