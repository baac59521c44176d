"""Writes src/allranks/library.pyi, the library's functions for editors and type checkers, from the specs.

python tools/make_library.py

The build runs it (hatch_build.py), without the SDK: it reads the specs themselves.
"""

import inspect
import textwrap
from pathlib import Path
from types import SimpleNamespace

import yaml

from allranks.catalog import shipped_specs
from allranks.catalog.functions import documentation, signature

STUB = Path(__file__).resolve().parents[1] / "src" / "allranks" / "library.pyi"

HEAD = '''\
# Generated from the specs of the components.

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
    specs = shipped_specs()
    functions = "\n".join(declaration(name, component(spec)) for name, spec in specs.items())
    return f"{HEAD}__all__ = [{', '.join(map(repr, specs))}]\n\n{functions}"


def component(spec: Path) -> SimpleNamespace:
    """Return a component with the attributes that azure-ai-ml's has."""
    written = yaml.safe_load(spec.read_text(encoding="utf-8"))
    unset = dict.fromkeys(("description", "optional", "default", "min", "max", "enum"))
    for section in ("inputs", "outputs"):
        ports = written.get(section, {}).items()
        written[section] = {name: SimpleNamespace(**{**unset, **port}) for name, port in ports}
    return SimpleNamespace(**written)


def declaration(name: str, component: SimpleNamespace) -> str:
    """Return the class of a component's outputs, and its function."""
    outputs = "".join(name.title().split("_")) + "Outputs"
    ports = list(component.outputs) or ["..."]
    members = "\n".join(f"    {port}: Output" if port != "..." else "    ..." for port in ports)
    parameters = ", ".join(map(parameter, signature(component).parameters.values()))
    text = textwrap.indent(f'"""{documentation(component)}\n"""', "    ", lambda line: bool(line.strip()))
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
