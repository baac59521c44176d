"""A user's Python file or notebook, read: imported, while what it asks of a workspace is answered on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from allranks.errors import InputError, Problem
from allranks.sdk import notebook, user_code
from allranks.sdk.node_lines import NodeLines
from allranks.sdk.offline_client import Find, Workspace, offline

NOTEBOOK = ".ipynb"
SUFFIXES = (".py", NOTEBOOK)
"""How the files end that are read here."""


@dataclass(frozen=True)
class PythonFile:
    """A file that was read.

    workspace: what it registered and submitted
    nodes:     the nodes that its pipeline functions made
    cut_short: what ended the reading after a job had been submitted, where something did
    """

    path: Path
    module: ModuleType
    workspace: Workspace
    nodes: NodeLines
    cut_short: list[Problem] = field(default_factory=list)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run more of the file's code inside of this block, under the conditions under which the file was read.

        Raise InputError, with the line, where the code raises.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(offline(self.workspace))
            stack.enter_context(self.nodes.recorded())
            if self.path.suffix == NOTEBOOK:
                stack.enter_context(_as_jupyter(self.path, self.module))
            stack.enter_context(user_code.told(self.path))
            yield


def read(path: Path, find: Find | None = None) -> PythonFile:
    """Import a Python file, or run a notebook's cells, and return what there is afterwards.

    An MLClient that is made meanwhile answers from this machine (see `allranks.sdk.offline_client`); only what the
    user's code does without the SDK can touch the network. What is raised after a job has been submitted ends the
    reading, and is no problem: that code works with a run that has not happened.

    find: gives the spec of a registered component on this machine, by its id, where there is one

    Call it, and run the file's functions, inside of `importable` and `allranks.sdk.session.session`. Raise InputError
    if the file cannot be read or its code raises."""
    name = f"_allranks_pipeline_{path.stem}"
    specification = None if path.suffix == NOTEBOOK else importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification) if specification else ModuleType("__main__")
    file = PythonFile(path, module, Workspace(path, find), NodeLines(path))
    sys.modules[name] = module
    try:
        with file.running():
            if specification is None:
                notebook.run(path, module)
            else:
                assert specification.loader is not None
                specification.loader.exec_module(module)
    except InputError as error:
        if not file.workspace.submitted:
            raise
        file.cut_short.extend(error.problems)
    finally:
        file.workspace.restore()
    return file


@contextlib.contextmanager
def importable(path: Path) -> Iterator[None]:
    """Let the file import what lies beside it, as ``python FILE`` does, and take that back afterwards.

    The search path is again what it was, and what was found by what the file itself added to it is forgotten: it keeps
    working, but the next file's modules may have the same names.
    """
    search, modules = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        added = [str(Path(folder).absolute()) for folder in sys.path if folder not in search]
        sys.path[:] = search
        # A package of several folders cannot say where it is once its parent is gone, so all are asked first.
        own = [name for name in set(sys.modules) - modules if _is_from(sys.modules[name], added)]
        for name in own:
            del sys.modules[name]
        sys.modules.pop(f"_allranks_pipeline_{path.stem}", None)


def _is_from(module: ModuleType, folders: list[str]) -> bool:
    """Return whether a module of the user's was found in one of the folders."""
    # A folder without __init__.py is a module that has no file.
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return (
        bool(file)
        and user_code.is_users(str(file))
        and any(Path(str(file)).is_relative_to(folder) for folder in folders)
    )


class _Nowhere(io.TextIOBase):
    """A stream that drops what is written, and is no terminal: `help` would start a pager on one."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


@contextlib.contextmanager
def _as_jupyter(path: Path, module: ModuleType) -> Iterator[None]:
    """What a cell finds in Jupyter: the notebook's folder is the current one, and the cells are ``__main__``.

    What cells print is dropped: it is shown in the notebook.
    """
    folder, main = Path.cwd(), sys.modules["__main__"]
    os.chdir(path.parent)
    sys.modules["__main__"] = module
    try:
        with contextlib.redirect_stdout(_Nowhere()):
            yield
    finally:
        sys.modules["__main__"] = main
        os.chdir(folder)
