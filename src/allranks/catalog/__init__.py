"""The components of a project, and those of the library: find, describe, version and export them."""

import functools
import os
from collections.abc import Mapping
from pathlib import Path

from allranks.catalog.variants import SPEC, refresh
from allranks.errors import InputError, Problem

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def shipped_folder() -> Path:
    """Return the folder that contains `components`, `environments`, `pipelines` and `template`: `shipped` in an
    installed wheel, or the repository of an editable installation.

    Raise InputError if the installation has neither.
    """
    for folder in (_PACKAGE / "shipped", _PACKAGE.parents[1]):
        if (folder / "components").is_dir() and (folder / "environments").is_dir():
            return folder
    found = "neither components nor environments in the package or beside it"
    raise InputError(Problem(str(_PACKAGE), found, "an installation from a wheel or a clone", "install allranks again"))


@functools.cache
def shipped_specs() -> Mapping[str, Path]:
    """Return the specs of the library's components by the names of their folders, sorted.

    `allranks.catalog.find` finds the same specs, but its imports take longer than loading a component.
    """
    specs = {}
    for folder, folders, files in os.walk(shipped_folder() / "components"):
        if _PACKAGE not in shipped_folder().parents:
            folders += {*refresh(Path(folder))}.difference(folders)
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        if SPEC in files:
            specs[os.path.basename(folder)] = Path(folder, SPEC)
    return dict(sorted(specs.items()))
