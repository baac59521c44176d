"""Find `LocalClient`, which is in the package allranks-client."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from allranks.errors import InputError, Problem
from allranks.version import __version__

_PACKAGE = "allranks-client"


def client_module(name: str, user: str) -> ModuleType:
    """Return a module of the package allranks-client.

    user: what needs it, as the user has written it

    Raise InputError if the package is not installed, or is for another version of allranks.
    """
    expected, fix = f"{_PACKAGE} {__version__}", f'pip install "allranks[client]=={__version__}"'
    try:
        found = version(_PACKAGE)
    except PackageNotFoundError:
        raise InputError(Problem(user, f"the package {_PACKAGE} is not installed", expected, fix)) from None
    if found != __version__:
        raise InputError(Problem(user, f"{_PACKAGE} {found} is for another version of allranks", expected, fix))
    return import_module(f"allranks_client.{name}")
