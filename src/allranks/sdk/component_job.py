"""Read a command or parallel component as a job of one step, whose inputs are the component's."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.contract.templating import PRIMITIVES, Primitive
from allranks.errors import InputError, Location, Problem, raise_any
from allranks.sdk import internals, specs
from allranks.sdk.paths import shown

LAYOUT = ("instance_count", "process_count_per_instance")
"""Settings of a job that runs a component, in addition to the component's inputs."""


@dataclass(frozen=True)
class ComponentFile:
    """The spec of a command or parallel component."""

    path: Path
    component: Any

    def inputs(self) -> dict[str, str | None]:
        """Return the types of the component's inputs, and of the settings in `LAYOUT`, by name."""
        ports: dict[str, str | None] = {name: str(port.type) for name, port in self.component.inputs.items()}
        return {**dict.fromkeys(LAYOUT, "integer"), **ports}

    def build(self, values: Mapping[str, tuple[str, Primitive]]) -> Any:
        """Return the SDK's job with these values (type and value) for its inputs and its layout.

        Raise InputError with a problem for each input without a value.
        """
        ports = self.component.inputs
        raise_any(
            Problem(
                f"input {name} of {self.component.name}",
                "it has no value",
                f"{port.type}: {' '.join((port.description or 'no description').split())}",
                f"--set {name}=VALUE",
            )
            for name, port in ports.items()
            if name not in values and port.default is None and port.optional is not True
        )
        job = self.component(
            **{
                name: value if kind in PRIMITIVES else internals.Input(type=kind, path=str(value))
                for name, (kind, value) in values.items()
                if name in ports
            }
        )
        instances, processes = (values[name][1] if name in values and name not in ports else None for name in LAYOUT)
        if instances is not None:
            _set_instances(job, int(instances))
        if processes is not None:
            _set_processes(job, int(processes))
        return job

    def location(self, path: str) -> Location | None:  # noqa: ARG002
        return Location(shown(self.path), 1)


def read(path: Path) -> ComponentFile:
    """Return the component of a spec. Raise InputError if it cannot be loaded or does not run a command."""
    component, *others = specs.load(path)
    if others:
        names = ", ".join(each.name for each in (component, *others))
        raise InputError(Problem(shown(path), f"it describes several components: {names}", "one component"))
    return ComponentFile(path, component)


def _set_instances(node: Any, count: int) -> None:
    """Set the number of instances of a step; also the number of TensorFlow's workers if each instance has one."""
    # Copy the objects, because the SDK shares those of the component.
    before, node.resources = node.resources, copy.copy(node.resources) or internals.JobResourceConfiguration()
    node.resources.instance_count = count
    distribution = getattr(node, "distribution", None)
    if before is not None and getattr(distribution, "worker_count", None) == before.instance_count:
        node.distribution = copy.copy(distribution)
        node.distribution.worker_count = count


def _set_processes(node: Any, count: int) -> None:
    """Set the number of processes per instance. Raise InputError if the distribution always starts one."""
    distribution = getattr(node, "distribution", None)
    if hasattr(distribution, "process_count_per_instance"):
        node.distribution = copy.copy(distribution)
        node.distribution.process_count_per_instance = count
    elif count != 1:
        kind = distribution.type.lower() if distribution else "none"
        found = f"{count}; the distribution {kind} starts one process on each instance"
        raise InputError(Problem("process_count_per_instance", found, "1", "omit it, or use -j Nx1"))
