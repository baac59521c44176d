"""Groups of options that several commands have.

A parameter of a command whose class is a group stands for the options of the group, which are the group's fields.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, get_type_hints

from allranks.cli import options

if TYPE_CHECKING:
    from allranks.azure.workspace import WorkspaceOptions
    from allranks.local.options import Options


@dataclass(frozen=True)
class AzureOptions:
    """The workspace of Azure ML."""

    subscription: options.SubscriptionOption = ""
    resource_group: options.ResourceGroupOption = ""
    workspace: options.AzureWorkspaceOption = ""
    config: options.ConfigOption = None

    def of(self, registry: str = "") -> WorkspaceOptions:
        """Return the values. Raise InputError if both a workspace and a registry are given."""
        from allranks.azure.workspace import WorkspaceOptions
        from allranks.errors import InputError, Problem

        if registry and self.workspace:
            found = f"the workspace {self.workspace} is given too"
            raise InputError(Problem(f"--registry {registry}", found, "one of them", "remove one of the options"))
        return WorkspaceOptions(self.subscription, self.resource_group, self.workspace, registry, self.config)


@dataclass(frozen=True)
class RunOptions:
    """How a run is executed on this machine."""

    instances: options.InstancesOption = options.InstancesChoice.AUTO
    retries: options.RetriesOption = 0
    slots: options.SlotsOption = None
    gpus: options.GpusOption = "auto"
    track: options.TrackOption = True
    cold: options.ColdOption = False
    mpi: options.MpiOption = options.MpiChoice.RSH
    start_timeout: options.StartTimeoutOption = 20.0

    def of(self, **others: Any) -> Options:
        """Return the options of a run. others: those that are not in the group"""
        from allranks.local.options import Options

        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Options(**values | {"instances": self.instances.value, "mpi": self.mpi.value}, **others)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its groups in place of the groups."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    if not groups:
        return command

    @functools.wraps(command)
    def with_groups(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    parameters = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(groups[name], include_extras=True)
        parameters += [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
            for field in fields(groups[name])
        ]
    with_groups.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_groups
