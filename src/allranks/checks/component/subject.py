"""A component's spec as written, before the SDK adds defaults, with the line of each key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.checks.plan.rule import Rule
from allranks.errors import Problem

DATA = frozenset({"uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model"})
"""Types of ports that the designer draws on the card's edge."""

NUMBERS = frozenset({"integer", "number"})
PARAMETERS = NUMBERS | {"string", "boolean"}
"""Types of ports that the designer shows as fields of the component's form."""


TRUE = frozenset({"true", "yes", "on", "t", "y", "1"})
FALSE = frozenset({"false", "no", "off", "f", "n", "0"})
"""Texts that marshmallow, with which azure-ai-ml reads specs, takes for booleans, in lower case."""


@dataclass(frozen=True)
class PortSpec:
    """A port as written. Values have the type that YAML or Python gives them: `default: "3"` is a string.

    default, minimum, maximum, enum: None if the spec does not set it
    """

    name: str
    type: str
    description: str = ""
    optional: Any = False
    default: Any = None
    minimum: Any = None
    maximum: Any = None
    enum: Any = None

    @property
    def is_optional(self) -> bool:
        """Whether the port may be left empty."""
        return str(self.optional).lower() in TRUE


@dataclass(frozen=True)
class Use:
    """A place that reads an input or writes an output. optional: whether it is inside ``$[[ ... ]]``."""

    kind: str
    name: str
    where: str
    optional: bool = False


@dataclass(frozen=True)
class Subject:
    """A component as the rules check it.

    version:       as written: an unquoted 1.10 is a number
    deterministic: None if the spec does not set it
    environment:   a reference, the mapping of an inline environment, the path of an environment's file, or None
    distribution:  as written; empty if there is none
    resources:     as written; empty if there are none
    variables:     names of its environment variables
    uses:          where ports are used, by the command or by the function's body
    entries:       Python files that the command starts
    folders:       where the code's own modules are: its folder, and those of its additional includes
    is_pipeline:   whether it is a pipeline component, which has no command and no environment of its own
    needs_command: whether its type has a command, and it is not a function
    needs_environment: whether its type runs in an environment: command and parallel components
    place:         returns the file and line of a key: place("inputs", "lr", "default")
    """

    path: Path
    name: str
    version: Any
    display_name: str
    description: str
    tags: Mapping[str, Any]
    deterministic: bool | None
    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    environment: Any
    place: Callable[..., str]
    command: str = ""
    distribution: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    entries: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    is_pipeline: bool = False
    needs_command: bool = False
    needs_environment: bool = True

    def report(self, rule: Rule, keys: tuple[str, ...], found: str, expected: str, fix: str = "") -> Problem:
        """Return a finding in one key. fix: by default the rule's"""
        return rule.problem(self.place(*keys), found, expected, fix)

    def ports(self) -> tuple[tuple[str, PortSpec], ...]:
        """Return every port with its section, inputs or outputs."""
        return (*(("inputs", port) for port in self.inputs), *(("outputs", port) for port in self.outputs))
