"""Writes src/allranks/library.pyi, the library's functions for editors and type checkers, from the specs.

python docs/make_library.py
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allranks import library

STUB = Path(__file__).resolve().parents[1] / "src" / "allranks" / "library.pyi"

HEAD = '''\
# Generated from the specs of the components by: python docs/make_library.py

from enum import Enum
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from azure.ai.ml.entities import Command

class Output(Protocol):
    """An output of a step, or other data: azure-ai-ml's Input has these attributes too."""

    type: Any
    mode: Any
    path: Any

Data: TypeAlias = str | Output | dict[str, Any]
"""A path or URI as text, an Input, or an output of a step."""

_Outputs = TypeVar("_Outputs")

class Step(Command, Generic[_Outputs]):  # type: ignore[misc, unused-ignore]
    """azure-ai-ml's node, with the outputs of its component."""

    outputs: _Outputs  # type: ignore[assignment, unused-ignore]

'''


def stub() -> str:
    """Return the whole file."""
    names = library.__all__
    functions = "\n".join(declaration(name, getattr(library, name)) for name in names)
    return f"{HEAD}__all__ = [{', '.join(map(repr, names))}]\n\n{functions}"


def declaration(name: str, function: Callable[..., Any]) -> str:
    """Return the class of a component's outputs, and its function."""
    outputs = "".join(name.title().split("_")) + "Outputs"
    ports = list(getattr(function, "component").outputs) or ["..."]  # noqa: B009
    members = "\n".join(f"    {port}: Output" if port != "..." else "    ..." for port in ports)
    parameters = ", ".join(map(parameter, inspect.signature(function).parameters.values()))
    text = textwrap.indent(f'"""{inspect.getdoc(function)}\n"""', "    ", lambda line: bool(line.strip()))
    star = f"*, {parameters}" if parameters else ""
    return f"class {outputs}:\n{members}\n\ndef {name}({star}) -> Step[{outputs}]:\n{text}\n"


def parameter(declared: inspect.Parameter) -> str:
    """Return a parameter. An output of a step is also allowed where a number or a text is."""
    kind, _, optional = str(declared.annotation).partition(" | ")
    allowed = [kind] if kind == "Data" else [kind, "Enum", "Output"] if kind.startswith("Literal") else [kind, "Output"]
    default = "" if declared.default is declared.empty else f" = {declared.default!r}"
    return f"{declared.name}: {' | '.join([*allowed, optional] if optional else allowed)}{default}"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
