"""Read a job that a Python file or notebook creates: ``pipeline_job = train_digits(epochs=3)``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.plan.graph import Location
from allranks.plan.ports import PRIMITIVES
from allranks.plan.reader import step_ports, unknown_values
from allranks.plan.reader.context import plain
from allranks.plan.reader.dsl_file import located
from allranks.plan.reader.settings import Setting
from allranks.sdk import internals
from allranks.sdk.python_file import PythonFile


@dataclass(frozen=True)
class MadeJob:
    """A job and its file. name: the job's variable"""

    file: PythonFile
    name: str
    job: Any

    @property
    def path(self) -> Path:
        return self.file.path

    def inputs(self) -> dict[str, str | None]:
        """Return the names of the job's inputs with their types; None if the type is not declared."""
        ports = getattr(self.job, "inputs", None)
        names = [name for name, _ in step_ports.flat(ports)] if isinstance(ports, dict) else []
        return dict(self._declared()) | {name: None for name in names if name not in dict(self._declared())}

    def given(self, name: str) -> Setting | None:
        """Return the value of an input in the job, if it is a plain value."""
        port = dict(step_ports.flat(self.job.inputs)).get(name)
        value = plain(internals.data(port)) if port is not None else None
        return value if isinstance(value, (str, int, float, bool)) else None

    def build(self, values: Mapping[str, tuple[str, Setting]]) -> Any:
        """Return the SDK's job with these values (type and value) in place of those in the file."""
        from azure.ai.ml import Input

        for name, (kind, value) in values.items():
            self._set(name, kind, value if kind in PRIMITIVES else Input(type=kind, path=str(value)))
        unknown_values.refuse(self.job, self.location)
        return self.job

    def location(self, path: str) -> Location | None:
        """Return where the node at this path is created."""
        return located(self.file.nodes.line(self.job, path))

    def _declared(self) -> Iterator[tuple[str, str | None]]:
        component = getattr(self.job, "component", None)
        function = self.file.nodes.function(component)
        parameters = inspect.signature(function).parameters if function else {}
        for name, port in (getattr(component, "inputs", None) or {}).items():
            if isinstance(port, internals.GroupInput):
                yield from ((inner, str(member.type)) for inner, member in port.flatten(name).items())
                continue
            annotated = name in parameters and parameters[name].annotation is not inspect.Parameter.empty
            # Inputs of a command are declared only if they have no value.
            declared = annotated if function else port.default is None
            yield name, str(port.type) if declared and port.type else None

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
