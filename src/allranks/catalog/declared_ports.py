"""The inputs and outputs of a component as plain data: as the SDK loads them, and as a spec declares them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DATA = frozenset({"uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model"})
"""Types of ports that the designer draws on the card's edge."""

NUMBERS = frozenset({"integer", "number"})
PARAMETERS = NUMBERS | {"string", "boolean"}
"""Types of ports that the designer shows as fields of the component's form."""

TRUE = frozenset({"true", "yes", "on", "t", "y", "1"})
FALSE = frozenset({"false", "no", "off", "f", "n", "0"})
"""Texts, in lower case, that azure-ai-ml reads as booleans in specs."""


@dataclass(frozen=True)
class Port:
    """An input or an output. The fields after `optional` only apply to numbers, strings and booleans.

    In a port as a spec declares it, values have their YAML or Python type: `default: "3"` is a string.

    default, minimum, maximum, enum: None if the spec does not set it
    """

    name: str
    type: str
    description: str = ""
    optional: Any = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    enum: Any = None


def input_ports(component: Any) -> tuple[Port, ...]:
    """Return the inputs of azure-ai-ml's component."""
    return tuple(
        Port(
            name=name,
            type=port.type,
            description=port.description or "",
            optional=port.optional is True,
            default=_typed(port.type, port.default),
            minimum=None if port.min is None else float(port.min),
            maximum=None if port.max is None else float(port.max),
            enum=tuple(port.enum) if port.enum else None,
        )
        for name, port in component.inputs.items()
    )


def output_ports(component: Any) -> tuple[Port, ...]:
    """Return the outputs of azure-ai-ml's component."""
    return tuple(Port(name, port.type, port.description or "") for name, port in component.outputs.items())


def _typed(kind: str, value: Any) -> str | int | float | bool | None:
    """Return a default with the type of its input. The SDK stores some defaults as strings."""
    if value is None or isinstance(value, bool):
        return value
    if kind == "integer":
        return int(value)
    if kind == "number":
        return float(value)
    return str(value).lower() == "true" if kind == "boolean" else str(value)


def port_specs(section: Any) -> Iterator[Port]:
    """Yield the ports of a section of a spec, inputs or outputs."""
    if not isinstance(section, dict):
        return
    for name, port in section.items():
        port = port if isinstance(port, dict) else {"type": port}
        yield Port(
            name=str(name),
            type=str(port.get("type") or ""),
            description=str(port.get("description") or "").strip(),
            optional=port.get("optional", False),
            default=port.get("default"),
            minimum=port.get("min"),
            maximum=port.get("max"),
            enum=enum if isinstance(enum := port.get("enum"), list) else None,
        )
