"""A pipeline of a Python file or notebook: a function with ``@dsl.pipeline``, or a job that the file creates."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from allranks.contract.templating import PRIMITIVES, Primitive
from allranks.errors import Level, Location, Problem, StepPlace, raise_any
from allranks.sdk import internals
from allranks.sdk.entity_ports import flat, flat_definitions, plain
from allranks.sdk.offline_values import Asset, Unknown
from allranks.sdk.paths import shown
from allranks.sdk.python_file import PythonFile


@dataclass(frozen=True)
class _OfFile:
    """A job or function of a Python file."""

    file: PythonFile

    @property
    def warnings(self) -> list[Problem]:
        return self.file.warnings


@dataclass(frozen=True)
class DslFile(_OfFile):
    """A pipeline function and its file."""

    function: Callable[..., Any]
    _built: list[Any] = field(default_factory=list)

    def inputs(self) -> dict[str, str | None]:
        """Return the types of the pipeline's inputs by name; None for an input without annotation."""
        parameters = inspect.signature(self.function).parameters
        declared = _declared(self._builder.inputs, lambda name: _is_annotated(parameters[name]))
        return declared | {name: _plain_type(parameters[name]) for name in self._builder.non_pipeline_parameter_names}

    def given(self, name: str) -> Primitive | None:
        """Return the default of an input, if it has one."""
        default = inspect.signature(self.function).parameters[name].default
        return default if isinstance(default, (str, int, float, bool)) else None

    def build(self, values: Mapping[str, tuple[str, Primitive]]) -> Any:
        """Call the function with these values (type and value), and return the SDK's job.

        Raise InputError if the function raises, or if a parameter that is not an input of the pipeline has no value.
        """
        self._require_plain(values)
        with self.file.running():
            job = self.function(**self._arguments(values))
        self._built[:] = [job]
        refuse(job, self.location)
        return job

    def location(self, path: str) -> Location | None:
        """Return the line that creates the node at this path. None before the job is built."""
        return self.file.nodes.line(self._built[0], path) if self._built else None

    @property
    def _builder(self) -> Any:
        return internals.pipeline_builder(self.function)

    def _arguments(self, values: Mapping[str, tuple[str, Primitive]]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for name, (kind, value) in values.items():
            argument = value if kind in PRIMITIVES else internals.Input(type=kind, path=str(value))
            group, *inner = name.split(".")
            if not inner:
                arguments[name] = argument
                continue
            # The argument is the whole group, in which unset values have their defaults.
            if group not in arguments:
                arguments[group] = self._group(group)
            target = arguments[group]
            for part in inner[:-1]:
                target = getattr(target, part)
            setattr(target, inner[-1], argument)
        return arguments

    def _group(self, name: str) -> Any:
        parameter = inspect.signature(self.function).parameters[name]
        default = parameter.default
        return parameter.annotation() if default in (inspect.Parameter.empty, None) else copy.deepcopy(default)

    def _require_plain(self, values: Mapping[str, Any]) -> None:
        """Raise InputError if a parameter that is not an input of the pipeline has neither a value nor a default."""
        parameters = inspect.signature(self.function).parameters
        where = f"of the pipeline ({shown(self.file.path)})"
        raise_any(
            Problem(f"input {name} {where}", "it has no value", "", f"set it: --set {name}=VALUE", "missing-input")
            for name in self._builder.non_pipeline_parameter_names
            if parameters[name].default is inspect.Parameter.empty and name not in values
        )


def _declared(inputs: Mapping[str, Any], has_type: Callable[[str], bool]) -> dict[str, str | None]:
    """Return the types of inputs by name; None for an input without a type. Inputs of groups have types."""
    return {
        name: str(port.type) if port.type and (name not in inputs or has_type(name)) else None
        for name, port in flat_definitions(inputs)
    }


def _is_annotated(parameter: inspect.Parameter | None) -> bool:
    return parameter is not None and parameter.annotation is not inspect.Parameter.empty


def _plain_type(parameter: inspect.Parameter) -> str | None:
    """Return the type of a parameter that takes an ordinary Python value."""
    names = {int: "integer", float: "number", bool: "boolean", str: "string"}
    annotated = {kind.__name__: name for kind, name in names.items()}
    return names.get(parameter.annotation) or annotated.get(str(parameter.annotation))


def refuse(job: Any, locate: Callable[[str], Location | None]) -> None:
    """Raise InputError if an input of the job, or of a node at any depth, has an unknown value."""
    problems = []
    for path, node in (("", job), *_nodes(job, "")):
        for name, value in _unknown_inputs(node):
            where = StepPlace(path, locate(path)).key(f"inputs.{name}") if path else f"input {name} of the pipeline"
            found = f"it is {value}, which only a workspace knows"
            expected, fix, code = "a value that is known before the run", "write the value", "unresolved-name"
            problems.append(Problem(where, found, expected, fix, code, level=Level.MACHINE))
    raise_any(problems)


def _nodes(pipeline: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    nodes = getattr(pipeline, "jobs", None)
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        yield f"{prefix}{name}", node
        yield from _nodes(getattr(node, "component", None), f"{prefix}{name}.")


def _unknown_inputs(job: Any) -> Iterator[tuple[str, str]]:
    inputs = getattr(job, "inputs", None)
    for name, port in flat(inputs) if isinstance(inputs, dict) else ():
        value = internals.data(port)
        value = value.path if isinstance(value, internals.Input) else value
        if isinstance(value, Unknown) and not isinstance(value, Asset):
            yield name, value


@dataclass(frozen=True)
class PythonJob(_OfFile):
    """A job and its file. name: the job's variable"""

    name: str
    job: Any

    def inputs(self) -> dict[str, str | None]:
        """Return the types of the job's inputs by name; None if the type is not declared."""
        component = getattr(self.job, "component", None)
        inputs = getattr(component, "inputs", None) or {}
        function = self.file.nodes.function(component)
        parameters = inspect.signature(function).parameters if function else {}

        def has_type(name: str) -> bool:
            # The inputs of a command are only declared if they have no value.
            return _is_annotated(parameters.get(name)) if function else inputs[name].default is None

        ports = getattr(self.job, "inputs", None)
        names = [name for name, _ in flat(ports)] if isinstance(ports, dict) else []
        return {**dict.fromkeys(names), **_declared(inputs, has_type)}

    def given(self, name: str) -> Primitive | None:
        """Return the value of an input in the job, if it is a plain value."""
        port = dict(flat(self.job.inputs)).get(name)
        value = plain(internals.data(port)) if port is not None else None
        return value if isinstance(value, (str, int, float, bool)) else None

    def build(self, values: Mapping[str, tuple[str, Primitive]]) -> Any:
        """Return the SDK's job with these values (type and value) replacing those in the file."""
        for name, (kind, value) in values.items():
            self._set(name, kind, value if kind in PRIMITIVES else internals.Input(type=kind, path=str(value)))
        refuse(self.job, self.location)
        return self.job

    def location(self, path: str) -> Location | None:
        """Return the line that creates the node at this path."""
        return self.file.nodes.line(self.job, path)

    def _set(self, name: str, kind: str, value: Any) -> None:
        *groups, last = name.split(".")
        ports = self.job.inputs
        for group in groups:
            ports = ports[group]
        if last in ports:
            setattr(ports, last, value)
            if "command" in vars(type(self.job)):
                # The SDK derived the type from the value that is replaced.
                internals.declaration(ports[last]).type = kind
        else:
            ports[last] = internals.build_input(self.job, last, self.job.component.inputs.get(last), value)
