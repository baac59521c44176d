"""A pipeline that is a function in a Python file, decorated with ``@dsl.pipeline``."""

from __future__ import annotations

import contextlib
import copy
import difflib
import importlib.util
import inspect
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Location
from allranks.plan.reader.settings import Setting
from allranks.sdk import complaints
from allranks.sdk.paths import shown

_LIBRARIES = (
    *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    *site.getsitepackages(),
    site.getusersitepackages(),
)
_OWN = str(Path(__file__).parents[2])


@dataclass(frozen=True)
class DslFile:
    """A pipeline function and the file that it stands in."""

    path: Path
    function: Callable[..., Any]
    lines: dict[str, Location] = field(default_factory=dict)

    def inputs(self) -> dict[str, str | None]:
        """The names of the pipeline's inputs with their types; None for one that is not annotated."""
        parameters = inspect.signature(self.function).parameters
        return dict(self._declared(self._builder.inputs, parameters)) | {
            name: _plain_type(parameters[name]) for name in self._builder.non_pipeline_parameter_names
        }

    def given(self, name: str) -> Setting | None:
        """The default of an input, where it has one."""
        default = inspect.signature(self.function).parameters[name].default
        return default if isinstance(default, (str, int, float, bool)) else None

    def build(self, values: Mapping[str, tuple[str, Setting]]) -> Any:
        """The SDK's job: calls the function with these values (type and value).

        Raises InputError where the function raises, or lacks an argument that is no input of the pipeline.
        """
        self._require_plain(values)
        nodes: list[tuple[Any, Location | None]] = []
        with self._recorded(nodes), _told(self.path):
            job = self.function(**self._arguments(values))
        self.lines.clear()
        for node, location in nodes:
            if location:
                self.lines[node.name] = location
        return job

    def location(self, step: str) -> Location | None:
        """Where a step's component is called, once the job has been built."""
        return self.lines.get(step)

    @property
    def _builder(self) -> Any:
        return vars(self.function)["_pipeline_builder"]

    def _declared(
        self, inputs: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
    ) -> Iterator[tuple[str, str | None]]:
        from azure.ai.ml.entities._inputs_outputs import GroupInput

        for name, port in inputs.items():
            if isinstance(port, GroupInput):
                yield from ((inner, str(found.type)) for inner, found in port.flatten(name).items())
            else:
                annotated = parameters[name].annotation is not inspect.Parameter.empty
                yield name, str(port.type) if annotated and port.type else None

    def _arguments(self, values: Mapping[str, tuple[str, Setting]]) -> dict[str, Any]:
        from azure.ai.ml import Input

        from allranks.plan.ports import PRIMITIVES

        arguments: dict[str, Any] = {}
        for name, (kind, value) in values.items():
            argument = value if kind in PRIMITIVES else Input(type=kind, path=str(value))
            group, *inner = name.split(".")
            if not inner:
                arguments[name] = argument
                continue
            # The whole group is the argument; what is not set keeps its default.
            if group not in arguments:
                arguments[group] = self._group(group)
            target = arguments[group]
            for part in inner[:-1]:
                target = getattr(target, part)
            setattr(target, inner[-1], argument)
        return arguments

    def _group(self, name: str) -> Any:
        """A group of inputs with its defaults."""
        parameter = inspect.signature(self.function).parameters[name]
        default = parameter.default
        return parameter.annotation() if default in (inspect.Parameter.empty, None) else copy.deepcopy(default)

    def _require_plain(self, values: Mapping[str, Any]) -> None:
        """Raises InputError where a parameter that is no input of the pipeline has neither a value nor a default."""
        parameters = inspect.signature(self.function).parameters
        missing = [
            name
            for name in self._builder.non_pipeline_parameter_names
            if parameters[name].default is inspect.Parameter.empty and name not in values
        ]
        if missing:
            raise InputError.of(
                Problem(
                    f"input {name} of the pipeline ({shown(self.path)})",
                    "it has no value",
                    "",
                    f"give one: --set {name}=VALUE",
                )
                for name in missing
            )

    @contextlib.contextmanager
    def _recorded(self, nodes: list[tuple[Any, Location | None]]) -> Iterator[None]:
        """Notes which line of the user's code made each node."""
        builder = self._builder
        add_node = builder.add_node

        def add(node: Any) -> None:
            nodes.append((node, _caller(sys._getframe(1), self.path)))
            add_node(node)

        builder.add_node = add
        try:
            yield
        finally:
            del builder.add_node


@contextlib.contextmanager
def importable(path: Path) -> Iterator[None]:
    """Lets the file import what lies beside it, as ``python FILE`` does, and takes that back afterwards.

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


def _is_from(module: ModuleType, folders: list[str]) -> bool:
    """Whether a module of the user's was found in one of the folders."""
    # A folder without __init__.py is a module that has no file.
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return bool(file) and _is_users(str(file)) and any(Path(str(file)).is_relative_to(folder) for folder in folders)


def read(path: Path, function: str | None) -> DslFile:
    """Imports the file and finds its pipeline: the one of that name, or the only one.

    Call it, and `DslFile.build`, inside of `importable`. Raises InputError where the file cannot be imported, or does
    not have that pipeline, or has several.
    """
    with _told(path):
        module = _import(path)
    found = {name: value for name, value in vars(module).items() if _is_pipeline(value)}
    own = {name: value for name, value in found.items() if value.__wrapped__.__module__ == module.__name__} or found
    if function is not None:
        if function in found:
            return DslFile(path, found[function])
        raise InputError(_not_found(path, function, list(own), hasattr(module, function)))
    if len(set(map(id, own.values()))) == 1:
        return DslFile(path, next(iter(own.values())))
    if own:
        fix = "say which: " + " or ".join(f"{shown(path)}:{name}" for name in own)
        raise InputError(Problem(shown(path), f"it has {len(own)} pipelines: {', '.join(own)}", "one pipeline", fix))
    expected = "a function that is decorated with @dsl.pipeline"
    raise InputError(Problem(shown(path), "it has no pipeline", expected))


def _import(path: Path) -> ModuleType:
    name = f"_allranks_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_pipeline(value: Any) -> bool:
    return inspect.isfunction(value) and "_pipeline_builder" in vars(value)


def _not_found(path: Path, function: str, own: list[str], exists: bool) -> Problem:
    found = f"{function} is no pipeline" if exists else f"there is no {function}"
    expected = "a function that is decorated with @dsl.pipeline" + (f": {', '.join(own)}" if own else "")
    similar = difflib.get_close_matches(function, own, n=1)
    return Problem(shown(path), found, expected, f"did you mean {shown(path)}:{similar[0]}?" if similar else "")


def _plain_type(parameter: inspect.Parameter) -> str | None:
    """The type of a parameter that is an ordinary Python value."""
    names = {int: "integer", float: "number", bool: "boolean", str: "string"}
    annotated = {kind.__name__: name for kind, name in names.items()}
    return names.get(parameter.annotation) or annotated.get(str(parameter.annotation))


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turns what the user's code raises into one problem with its file and line."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(_raised(error, path)) from None


def _raised(error: BaseException, path: Path) -> Problem:
    if isinstance(error, SyntaxError) and error.filename and not _is_library(error.filename):
        return Problem(f"{shown(error.filename)}:{error.lineno}", f"it is not Python: {error.msg}", "Python")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    own = [frame for frame in frames if frame.filename == str(path)] or frames
    place = f"{shown(own[-1].filename)}:{own[-1].lineno}" if own else shown(path)
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        fix = f"install what provides {package}, or put {package}.py beside the file"
        return Problem(place, f"there is no module {error.name}", "", fix)
    if isinstance(error, SystemExit):
        return Problem(place, "it ends Python while it is read", "a file that only defines pipelines when imported")
    return Problem(place, complaints.one_line(error))


def _caller(frame: FrameType | None, path: Path) -> Location | None:
    """The innermost line of the file on the stack, or else of the user's other code."""
    nearest = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file == str(path):
            return Location(shown(path), frame.f_lineno)
        if nearest is None and _is_users(file):
            nearest = Location(shown(file), frame.f_lineno)
        frame = frame.f_back
    return nearest


def _is_users(file: str) -> bool:
    return not file.startswith("<") and not _is_library(file) and not file.startswith(_OWN)


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)
