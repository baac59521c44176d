"""Read a user's Python file or notebook: import it, with requests to a workspace answered on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from allranks.errors import InputError, Level, Location, Problem, raise_any
from allranks.sdk import internals, notebook, user_code
from allranks.sdk.notebook import SkippedStatements
from allranks.sdk.offline_client import Find, Workspace, client_class, replaced_clients
from allranks.sdk.quick_functions import quick_functions
from allranks.sdk.session import entry

NOTEBOOK = ".ipynb"
SUFFIXES = (".py", NOTEBOOK)
"""The suffixes of supported files."""

_LIBRARY = "allranks.library"


@dataclass(frozen=True)
class PythonFile:
    """A file that was read.

    workspace: the entities that it registered and submitted
    nodes:     the nodes that its pipeline functions created
    cut_short: problems that ended the reading after a job was submitted
    warnings:  reasons why statements of a notebook were skipped
    """

    path: Path
    module: ModuleType
    workspace: Workspace
    nodes: NodeLines
    cut_short: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Provide the conditions under which the file was read, to run more of its code inside of the block.

        Raise InputError, with the line, if the code raises.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced_clients(client_class(self.workspace)))
            stack.enter_context(quick_functions())
            stack.enter_context(self.nodes.recorded())
            if self.path.suffix == NOTEBOOK:
                stack.enter_context(as_jupyter(self.path, self.module))
                # Discard output. On a terminal, `help` would start a pager.
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
                sdk = importlib.import_module("azure.ai.ml")
                stack.enter_context(entry(vars(sdk), "load_job", partial(_load_job, sdk.load_job)))
            stack.enter_context(user_code.input_errors(self.path))
            yield


OnJob = Callable[["PythonFile", Any, bool], None]
"""A function that is called with a job in its current state, and whether it is being submitted."""


def read(path: Path, find: Find | None = None, on_job: OnJob | None = None, *, keeps_ids: bool = False) -> PythonFile:
    """Import a Python file, or run a notebook's cells, and return the result.

    Each MLClient uses this machine only (see `allranks.sdk.offline_client`); code that does not use the SDK can access
    the network. An exception after a job was submitted ends the reading and is not an error: that code depends on a run
    that has not happened.

    find:   returns the local spec of a registered component by its id; None if there is none
    keeps_ids: whether a component that is found keeps its id, as for Azure ML
    on_job: called with each submitted job, and after each cell of a notebook with the other new jobs

    Statements of a notebook that this machine cannot execute are skipped if a job is submitted without them.

    Call it, and run the file's functions, inside of `importable` and `allranks.sdk.session.session`. Raise InputError
    if the file cannot be read or its code raises."""
    name = f"_allranks_pipeline_{path.stem}"
    specification = None if path.suffix == NOTEBOOK else importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification) if specification else ModuleType("__main__")
    file = PythonFile(path, module, Workspace(path, find, keeps_ids), NodeLines(path))
    skipped = SkippedStatements(path, lambda: not file.workspace.submitted, file.warnings)
    seen = 0

    def after_cell() -> None:
        nonlocal seen
        created, seen = file.nodes.jobs[seen:], len(file.nodes.jobs)
        for job in created:
            is_submitted = any(job is other for other in file.workspace.submitted)
            if on_job is not None and not is_submitted and not file.nodes.is_node(job):
                on_job(file, job, False)

    if on_job is not None:
        file.workspace.on_submit = lambda job: on_job(file, job, True)
    sys.modules[name] = module
    try:
        with file.running():
            if specification is None:
                notebook.run(path, module, skipped, after_cell)
            else:
                user_code.execute(path, module)
    except InputError as error:
        if not file.workspace.submitted:
            raise InputError.of((*error.problems, *file.warnings)) from None
        file.cut_short.extend(error.problems)
    finally:
        file.workspace.restore()
    if not file.workspace.submitted:
        raise_any(replace(problem, level=Level.ERROR) for problem in skipped.required())
    return file


def _load_job(load_job: Callable[..., Any], source: Any, *arguments: Any, **options: Any) -> Any:
    """Load a job by its absolute path, which remains valid outside of the notebook's folder."""
    source = os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else source
    return load_job(source, *arguments, **options)


@contextlib.contextmanager
def importable(path: Path) -> Iterator[None]:
    """Let the file import modules next to it, as ``python FILE`` does, inside of the block.

    Afterwards, the search path is restored, and modules from added folders are removed from sys.modules, since modules
    of the next file may have the same names. The file gets its own copy of the library, because submitting a pipeline
    replaces the code and the environment of its components by ids."""
    search, modules = list(sys.path), set(sys.modules)
    library = sys.modules.pop(_LIBRARY, None)
    sys.path.insert(0, str(path.parent))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        added = [str(Path(folder).absolute()) for folder in sys.path if folder not in search]
        sys.path[:] = search
        # A namespace package cannot compute its path after its parent is removed, so collect all of them first.
        own = [name for name in set(sys.modules) - modules if _is_from(sys.modules[name], added)]
        for name in own:
            del sys.modules[name]
        sys.modules.pop(_LIBRARY, None)
        if library is not None:
            sys.modules[_LIBRARY] = library
        sys.modules.pop(f"_allranks_pipeline_{path.stem}", None)


def _is_from(module: ModuleType, folders: list[str]) -> bool:
    """Return whether a module is user code in one of the folders."""
    # A namespace package, a folder without __init__.py, has no file.
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return (
        bool(file)
        and user_code.is_users(str(file))
        and any(Path(str(file)).is_relative_to(folder) for folder in folders)
    )


@contextlib.contextmanager
def as_jupyter(path: Path, module: ModuleType) -> Iterator[None]:
    """Reproduce the environment of cells in Jupyter: they run as ``__main__`` in the notebook's folder."""
    with contextlib.chdir(path.parent), entry(sys.modules, "__main__", module):
        yield


class NodeLines:
    """The nodes that a file's pipeline functions create, at any depth, with the lines that create them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Hold the nodes and components, so that no other object gets the id of one of them.
        self._nodes: dict[int, tuple[Any, Location | None]] = {}
        self._functions: dict[int, tuple[Any, Callable[..., Any]]] = {}
        self.jobs: list[Any] = []
        """The jobs and nodes that the file has created, in order."""
        self.created: dict[int, Location | None] = {}
        """The line that created each job, by the id of the object."""

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the nodes that are created inside of the block."""
        builder_class, initialize = internals.PipelineComponentBuilder, vars(internals.Job)["__init__"]
        add_node, build = builder_class.add_node, builder_class.build

        def add(builder: Any, node: Any) -> None:
            self._nodes[id(node)] = node, user_code.caller(sys._getframe(1), self._path)
            add_node(builder, node)

        def built(builder: Any, **arguments: Any) -> Any:
            component = build(builder, **arguments)
            self._functions[id(component)] = component, builder.func
            return component

        def created(job: Any, *arguments: Any, **options: Any) -> None:
            initialize(job, *arguments, **options)
            self.jobs.append(job)
            self.created[id(job)] = user_code.caller(sys._getframe(1), self._path)

        with (
            internals.replaced(builder_class, "add_node", add),
            internals.replaced(builder_class, "build", built),
            internals.replaced(internals.Job, "__init__", created),
        ):
            yield

    def function(self, component: Any) -> Callable[..., Any] | None:
        """Return the file's pipeline function that created the component; None if there is none."""
        entry = self._functions.get(id(component))
        return entry[1] if entry else None

    def is_node(self, value: Any) -> bool:
        return id(value) in self._nodes

    def line(self, job: Any, path: str) -> Location | None:
        """Return the line that created a job's node at a path: ``prepare``, or ``tune.train`` in a nested pipeline."""
        nodes = getattr(job, "jobs", None)
        node = None
        for name in path.split("."):
            node = nodes.get(name) if isinstance(nodes, dict) else None
            component = getattr(node, "component", None)
            nodes = getattr(component, "jobs", None)
        entry = self._nodes.get(id(node))
        return entry[1] if entry else None
