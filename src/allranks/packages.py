"""Find commands and hooks of the packages beside this one by their entry points. A package is imported when used."""

import glob
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from allranks.errors import InputError, Problem
from allranks.version import __version__

COMMANDS = "allranks.commands"
HOOKS = "allranks.hooks"


class KnownCommand(NamedTuple):
    """The extra that installs a command of a package, and the section and the line of the command in the help."""

    extra: str
    section: str
    summary: str


KNOWN = {
    "debug": KnownCommand("lab", "Run", "Run a step, and what it needs, with a debugger in one of its ranks or all."),
    "mcp": KnownCommand("mcp", "Author", "Serve a project to coding agents, by the Model Context Protocol."),
    "migrate": KnownCommand(
        "migrate",
        "Author",
        "Turn scripts of SDK v1 into pipelines of azure-ai-ml, and DistributedComponents into command components.",
    ),
    "rehearse": KnownCommand("lab", "Run", "Show that a training survives evictions."),
    "studio": KnownCommand(
        "studio", "Look", "Design pipelines in the browser, on their own files, and see every run live."
    ),
    "verify-stacks": KnownCommand(
        "lab", "Machine", "Start two ranks of each installed stack, and check that they communicate."
    ),
    "verify-workspace": KnownCommand(
        "lab",
        "Azure",
        "Verify that a workspace starts the processes of a job as the local engine does.",
    ),
}

HOOKED = {
    "faults": "lab",
    "LocalClient": "client",
    "run_as_azure": "client",
    "load_ipython_extension": "client",
    "unload_ipython_extension": "client",
}
"""The extra that installs each hook."""


@dataclass(frozen=True)
class EntryPoint:
    """An entry point of an installed package. value: MODULE:NAME"""

    name: str
    value: str
    package: str
    version: str

    def load(self) -> Any:
        """Import the module, and return the object. Raise what the import raises."""
        module, _, name = self.value.partition(":")
        return getattr(import_module(module), name)


def entry_points(*, group: str) -> list[EntryPoint]:
    """Return the entry points of a group, of all packages on sys.path.

    importlib.metadata would make `allranks --help` a third slower, mostly because it imports email.
    """
    found: dict[str, EntryPoint] = {}
    for folder in dict.fromkeys(sys.path):
        for file in glob.glob(f"{glob.escape(folder or os.curdir)}/*.dist-info/entry_points.txt"):
            with open(file, encoding="utf-8") as text:
                _, _, section = text.read().partition(f"[{group}]\n")
            package, _, version = os.path.basename(os.path.dirname(file)).removesuffix(".dist-info").partition("-")
            for line in section.partition("\n[")[0].splitlines():
                name, is_entry, value = (part.strip() for part in line.partition("="))
                if is_entry:
                    found.setdefault(name, EntryPoint(name, value, package.replace("_", "-"), version))
    return list(found.values())


class PackageError(InputError):
    """A package is not installed, is for another version of allranks, or cannot be imported."""


def summaries() -> dict[str, str]:
    """Return the line in the help of each command whose package is installed."""
    found = _found(COMMANDS)
    return {name: KNOWN[name].summary if name in KNOWN else f"A command of {found[name].package}." for name in found}


def section(command: str) -> str:
    """Return the heading of the help under which a command is listed."""
    return KNOWN[command].section if command in KNOWN else "Other packages"


def command(name: str) -> Any:
    """Return the function or Typer application of a command; None if no package has it. Raise PackageError."""
    extra = KNOWN[name].extra if name in KNOWN else ""
    return _load(COMMANDS, name, extra, f"allranks {name}") if extra or name in _found(COMMANDS) else None


def hook(name: str, user: str) -> Any:
    """Return the object that a package adds to the core, a key of HOOKED. Raise PackageError.

    user: what needs it, for the message
    """
    return _load(HOOKS, name, HOOKED[name], user)


def faults(texts: Sequence[str]) -> Any:
    """Return the `Faults` of allranks-lab for texts such as ``kill:rank=3,step=20``. Raise InputError."""
    return hook("faults", f"--fault {texts[0]}")(texts)


def _load(group: str, name: str, extra: str, user: str) -> Any:
    install = f'pip install "allranks[{extra}]=={__version__}"' if extra else ""
    entry = _found(group).get(name)
    if entry is None:
        raise PackageError(Problem(user, f"the package allranks-{extra} is not installed", "", install))
    if extra and entry.version != __version__:
        found = f"{entry.package} {entry.version} is for another version of allranks than this one, {__version__}"
        raise PackageError(Problem(user, found, "", install))
    try:
        return entry.load()
    except Exception as error:
        found = f"{entry.package} cannot be imported: {type(error).__name__}: {error}"
        raise PackageError(Problem(user, found, "", install)) from error


def _found(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}
