"""Paths without spaces and other characters that a shell treats specially.

On Azure ML, inputs and outputs are mounted at such paths, so commands do not quote them. On this machine a workspace,
an input or a step may have any name. A path with such a name is reached through a link in the instance's temporary
folder: ``/home/me/my project/.allranks/...`` is ``/tmp/my_project/.allranks/...``.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from allranks.local.attempt.plain_names import is_plain, plain_name
from allranks.local.attempt.staging import Ports


def link(ports: Ports, data: Collection[str], folder: Path, seen: str) -> None:
    """Replace the paths of a step's ports on one instance by plain ones, and create the links that they need.

    data:   the names of the inputs that are paths
    folder: the instance's temporary folder
    seen:   its path as the instance sees it
    """
    links = Links(seen)
    for name, value in ports.inputs.items():
        if name in data and value is not None:
            ports.inputs[name] = links.plain(value)
    for name, path in ports.outputs.items():
        ports.outputs[name] = links.plain(path)
    links.create(folder)


class Links:
    """The links of one instance.

    seen: the path of the folder with the links, as the instance sees it
    """

    def __init__(self, seen: str) -> None:
        self._seen = seen
        self._names: dict[str, str] = {}

    def plain(self, path: str) -> str:
        """Return a plain path that leads to the same file or folder.

        The link leads to the innermost folder with a special name, so that what is below it keeps its own path: a
        program may replace or remove that, which it could not do with a link.
        """
        if is_plain(path) or not os.path.isabs(path):
            return path
        target, below = path, ""
        while is_plain(os.path.basename(target)):
            target, name = os.path.split(target)
            below = f"/{name}{below}"
        return f"{self._seen}/{self._name_of(target)}{below}"

    def create(self, folder: Path) -> None:
        """Create the links. folder: as the engine sees it"""
        for target, name in self._names.items():
            os.symlink(target, folder / name)

    def _name_of(self, target: str) -> str:
        if target not in self._names:
            name, used = plain_name(os.path.basename(target)), self._names.values()
            number = next(number for number in range(len(used) + 1) if _numbered(name, number) not in used)
            self._names[target] = _numbered(name, number)
        return self._names[target]


def _numbered(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name
