"""Find the commands of other packages by their entry points `allranks.commands`, and import a package when its command
runs."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from allranks.version import __version__

GROUP = "allranks.commands"

KNOWN = {
    "migrate": ("migrate", "Turn scripts of SDK v1 into pipelines of azure-ai-ml."),
    "verify-workspace": (
        "lab",
        "Verify that a workspace gives the processes of a job what the local engine gives them.",
    ),
}
"""The extra that installs a command, and the command's line in the help."""


class PackageError(Exception):
    """A command's package is not installed, is for another version of allranks, or cannot be imported."""


def summaries() -> dict[str, str]:
    """Return the line in the help of each command whose package is installed."""
    found = _found()
    return {name: KNOWN[name][1] if name in KNOWN else f"A command of {_package(found[name])}." for name in found}


def command(name: str) -> Any:
    """Return the function or the Typer application of a command; None if no package has one of that name.

    Raise PackageError.
    """
    entry = _found().get(name)
    if entry is None:
        if name not in KNOWN:
            return None
        raise PackageError(f"'{name}' is in a package that is not installed: pip install {_requirement(name)}")
    version = entry.dist.version if entry.dist else ""
    if name in KNOWN and version != __version__:
        found = f"{_package(entry)} {version} is for another version of allranks than this one, {__version__}"
        raise PackageError(f"{found}: pip install {_requirement(name)}")
    try:
        return entry.load()
    except Exception as error:
        raise PackageError(f"{_package(entry)} cannot be imported: {type(error).__name__}: {error}") from error


def _found() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _requirement(name: str) -> str:
    return f'"allranks[{KNOWN[name][0]}]=={__version__}"'
