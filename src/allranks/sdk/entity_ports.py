"""The inputs and outputs of azure-ai-ml's entities."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from allranks.sdk import internals


def plain(value: Any) -> Any:
    """Return a value as plain Python: a binding as its text in a request, an enum member as its value."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def flat(ports: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield ports with their names; those in groups have names such as ``group.name``."""
    for name, port in ports.items():
        if isinstance(port, internals.GroupAttrDict):
            yield from flat(port, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", port


def flat_definitions(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the declarations of inputs by name; those of a group have names such as ``group.name``."""
    for name, declared in inputs.items():
        if isinstance(declared, internals.GroupInput):
            yield from declared.flatten(name).items()
        else:
            yield name, declared


def is_port(value: Any) -> bool:
    """Return whether a value is a port. Users can assign any object in place of one."""
    try:
        internals.declaration(value)
    except AttributeError:
        return False
    return True
