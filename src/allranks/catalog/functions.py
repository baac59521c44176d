"""Create the functions of `allranks.library`: each takes the inputs of a component and returns a node."""

import contextlib
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from opcode import opmap
from pathlib import Path
from types import FrameType
from typing import Any

from allranks.catalog import shipped_specs
from allranks.catalog.declared_ports import Port, input_ports, output_ports
from allranks.errors import InputError, Problem, did_you_mean, raise_any
from allranks.sdk import internals, user_code
from allranks.sdk.session import quick_yaml, quiet
from allranks.sdk.specs import load

_TYPES: Mapping[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "boolean": (bool,)}
_NAMES = {"integer": "int", "number": "float", "boolean": "bool", "string": "str"}
_DATA = "Data"
_LITERALS = (str, int, float, list, tuple, set, Path)
"""Types of values that neither refer to a step or the pipeline nor describe data."""
_WIDTH = 100


class UnknownComponentError(InputError, AttributeError):
    """The library has no component of this name."""


class ComponentImportError(InputError, ImportError):
    """`from allranks.library import NAME` names a component that the library does not have."""


class _Annotation(str):
    """An annotation as the stub writes it. `help` shows it without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def unknown(name: str, frame: FrameType) -> InputError:
    """Return the error for a name that the library does not have. frame: of the code that uses the name"""
    fix = did_you_mean(name, shipped_specs(), "list them: print(allranks.library.__all__)")
    problem = Problem(_line(frame), f"allranks.library has no component {name}", "", fix)
    # In `from ... import NAME`, Python replaces the message of an AttributeError, and with it the similar name.
    is_import = frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
    return ComponentImportError(problem) if is_import else UnknownComponentError(problem)


def _line(frame: FrameType) -> str:
    return str(user_code.line(frame.f_code.co_filename, frame.f_lineno))


def component_function(name: str, spec: Path) -> Callable[..., Any]:
    """Return the function of a component of the library. name: of the spec's folder

    Raise InputError if the component cannot be loaded.
    """
    with quiet(), quick_yaml():
        component = _load(spec)
        create = internals.component_function(component)
    ports = {port.name: port for port in input_ports(component)}

    def function(**inputs: Any) -> Any:
        raise_any(_problems(name, ports, inputs, sys._getframe(1)))
        return create(**inputs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "allranks.library"
    function.__doc__ = documentation(component)
    function.__signature__ = signature(component)  # type: ignore[attr-defined]
    function.component = component  # type: ignore[attr-defined]
    return function


def signature(component: Any) -> inspect.Signature:
    """Return the signature of a component's function."""
    parameters = []
    for port in input_ports(component):
        default = None if port.optional else inspect.Parameter.empty if port.default is None else port.default
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, _annotation(port)
        parameters.append(inspect.Parameter(port.name, kind, default=default, annotation=annotation))
    return inspect.Signature(parameters)


def documentation(component: Any) -> str:
    """Return the docstring of a component's function."""
    parts = [textwrap.fill(" ".join(component.description.split()), _WIDTH)]
    for title, ports in (("Inputs", input_ports(component)), ("Outputs", output_ports(component))):
        if ports:
            parts.append("\n".join([f"{title}:", *map(_described, ports)]))
    parts.append(f"{component.name} {component.version}")
    return "\n\n".join(parts)


def _load(spec: Path) -> Any:
    with contextlib.suppress(Exception):  # `load`, which is slower, has the message
        return internals.load_component(spec)
    try:
        return load(spec)[0]
    except InputError as error:
        problems = (replace(problem, fix="install allranks again") for problem in error.problems)
        raise InputError.of(problems) from None


def _problems(name: str, ports: Mapping[str, Port], inputs: dict[str, Any], frame: FrameType) -> Iterator[Problem]:
    """Yield the problems of the inputs of a call. Values that refer to another step or to the pipeline are checked
    later."""
    for key, value in inputs.items():
        if key not in ports:
            fix = did_you_mean(key, ports, f"see help({name})")
            yield Problem(f"{_line(frame)}, {name}", f"it has no input {key}", "", fix)
            continue
        if isinstance(value, Enum):
            value = inputs[key] = value.value
        if isinstance(value, _LITERALS) and not _fits(ports[key], value):
            yield from _wrong(ports[key], value, f"{_line(frame)}, {name}, input {key}", f"see help({name})")


def _fits(port: Port, value: Any) -> bool:
    """Return whether a literal certainly fits. Most do, and `_wrong` needs many imports."""
    if port.type not in _TYPES:
        return isinstance(value, str) and (not port.enum or value in port.enum)
    if type(value) not in _TYPES[port.type] or not math.isfinite(value):
        return False
    return (port.minimum is None or value >= port.minimum) and (port.maximum is None or value <= port.maximum)


def _wrong(port: Port, value: Any, where: str, fix: str) -> Iterator[Problem]:
    # Only a wrong value needs these, which take 0.1 s to import.
    from allranks.plan.literals import wrong
    from allranks.plan.ports import PRIMITIVES, Input

    if port.type not in PRIMITIVES:
        yield Problem(where, repr(value), f"a path as text, an Input or an output of a step, of type {port.type}", fix)
    elif not isinstance(value, (str, int, float)):
        yield Problem(where, repr(value), f"a value of type {port.type}", fix)
    elif "${{" not in str(value):
        declared = Input(port.name, port.type, None, "", port.optional, port.minimum, port.maximum, port.enum or ())
        # Without its rule, because comments only suppress findings of a check.
        yield from (replace(problem, rule="", ignorable=False) for problem in wrong(where, declared, value, fix))


def _annotation(port: Port) -> _Annotation:
    kind = _NAMES.get(port.type, _DATA)
    if port.enum:
        kind = f"Literal[{', '.join(map(repr, port.enum))}]"
    return _Annotation(f"{kind} | None" if port.optional else kind)


def _described(port: Port) -> str:
    facts = [port.type]
    if port.enum:
        facts.append(f"one of {', '.join(port.enum)}")
    if port.minimum is not None:
        facts.append(f"{port.minimum:.15g} to {'any' if port.maximum is None else f'{port.maximum:.15g}'}")
    if port.optional:
        facts.append("optional")
    text = f"{port.name}: {', '.join(facts)}. {' '.join(port.description.split())}"
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="        ")
