"""Locate the components, environments and pipelines that come with allranks."""

from __future__ import annotations

import functools
from pathlib import Path

from allranks.errors import InputError, Problem

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def shipped_folder() -> Path:
    """Return the folder that contains `components`, `environments` and `pipelines`: `shipped` in an installed wheel,
    or the repository of an editable install.

    Raise InputError if the installation has neither.
    """
    for folder in (_PACKAGE / "shipped", _PACKAGE.parents[1]):
        if (folder / "components").is_dir() and (folder / "environments").is_dir():
            return folder
    found = "neither components nor environments in the package or beside it"
    raise InputError(Problem(str(_PACKAGE), found, "an installation from a wheel or a clone", "install allranks again"))
