"""Read a pipeline that is a function with ``@dsl.pipeline`` in a Python file."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Location
from allranks.plan.reader import unknown_values
from allranks.plan.reader.settings import Setting
from allranks.sdk import internals
from allranks.sdk.paths import shown
from allranks.sdk.python_file import PythonFile
from allranks.sdk.user_code import Line


@dataclass(frozen=True)
class DslFile:
    """A pipeline function and its file."""

    file: PythonFile
    function: Callable[..., Any]
    _built: list[Any] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.file.path

    def inputs(self) -> dict[str, str | None]:
        """Return the names of the pipeline's inputs with their types; None for one without annotation."""
        parameters = inspect.signature(self.function).parameters
        return dict(self._declared(self._builder.inputs, parameters)) | {
            name: _plain_type(parameters[name]) for name in self._builder.non_pipeline_parameter_names
        }

    def given(self, name: str) -> Setting | None:
        """Return the default of an input, if it has one."""
        default = inspect.signature(self.function).parameters[name].default
        return default if isinstance(default, (str, int, float, bool)) else None

    def build(self, values: Mapping[str, tuple[str, Setting]]) -> Any:
        """Return the SDK's job: call the function with these values (type and value).

        Raise InputError if the function raises, or lacks an argument that is not an input of the pipeline.
        """
        self._require_plain(values)
        with self.file.running():
            job = self.function(**self._arguments(values))
        self._built[:] = [job]
        unknown_values.refuse(job, self.location)
        return job

    def location(self, path: str) -> Location | None:
        """Return where the node at this path is created, after the job has been built."""
        return located(self.file.nodes.line(self._built[0], path)) if self._built else None

    @property
    def _builder(self) -> Any:
        return internals.pipeline_builder(self.function)

    def _declared(
        self, inputs: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
    ) -> Iterator[tuple[str, str | None]]:
        for name, port in inputs.items():
            if isinstance(port, internals.GroupInput):
                yield from ((inner, str(member.type)) for inner, member in port.flatten(name).items())
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
            # The argument is the whole group; values that are not set have their defaults.
            if group not in arguments:
                arguments[group] = self._group(group)
            target = arguments[group]
            for part in inner[:-1]:
                target = getattr(target, part)
            setattr(target, inner[-1], argument)
        return arguments

    def _group(self, name: str) -> Any:
        """Return a group of inputs with its defaults."""
        parameter = inspect.signature(self.function).parameters[name]
        default = parameter.default
        return parameter.annotation() if default in (inspect.Parameter.empty, None) else copy.deepcopy(default)

    def _require_plain(self, values: Mapping[str, Any]) -> None:
        """Raise InputError if a parameter that is not an input of the pipeline has neither a value nor a default."""
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
                    f"set it: --set {name}=VALUE",
                    code="missing-input",
                )
                for name in missing
            )


def located(line: Line | None) -> Location | None:
    """Return a line of the user's code as a location of the plan."""
    return Location(line.file, line.number, line.cell) if line else None


def _plain_type(parameter: inspect.Parameter) -> str | None:
    """Return the type of a parameter that is an ordinary Python value."""
    names = {int: "integer", float: "number", bool: "boolean", str: "string"}
    annotated = {kind.__name__: name for kind, name in names.items()}
    return names.get(parameter.annotation) or annotated.get(str(parameter.annotation))
