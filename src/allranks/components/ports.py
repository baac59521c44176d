"""The inputs and outputs of a component as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Port:
    """An input or an output. The fields after `optional` are for numbers, strings and booleans only."""

    name: str
    type: str
    description: str = ""
    optional: bool = False
    default: str | int | float | bool | None = None
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[str, ...] = ()


def input_ports(component: Any) -> tuple[Port, ...]:
    """Return the inputs of azure-ai-ml's component."""
    return tuple(_input_port(name, port) for name, port in component.inputs.items())


def output_ports(component: Any) -> tuple[Port, ...]:
    """Return the outputs of azure-ai-ml's component."""
    return tuple(Port(name, port.type, port.description or "") for name, port in component.outputs.items())


def _input_port(name: str, port: Any) -> Port:
    return Port(
        name=name,
        type=port.type,
        description=port.description or "",
        optional=port.optional is True,
        default=_typed(port.type, port.default),
        minimum=_number(port.min),
        maximum=_number(port.max),
        enum=tuple(port.enum or ()),
    )


def _typed(kind: str, value: Any) -> str | int | float | bool | None:
    """Return a default with the type of its input. The SDK stores some of them as strings."""
    if value is None or isinstance(value, bool):
        return value
    if kind == "integer":
        return int(value)
    if kind == "number":
        return float(value)
    return str(value).lower() == "true" if kind == "boolean" else str(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
