"""Check the ports: names, types, descriptions, optional marks, ranges, enums, defaults, and their use."""

import math
import re
from collections.abc import Iterator
from typing import Any

from allranks.catalog.declared_ports import DATA, FALSE, NUMBERS, PARAMETERS, TRUE, Port
from allranks.checks.component.subject import Subject
from allranks.contract.templating import EXPECTED
from allranks.errors import Problem, did_you_mean, finding

LEGACY = frozenset({"path"})
"""Types of earlier versions, which azure-ai-ml still accepts (SUPPORTED_PORT_TYPES)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def names(subject: Subject) -> Iterator[Problem]:
    """Check the names as azure-ai-ml does (Component._validate_io_names)."""
    seen: dict[str, str] = {}
    for kind, port in subject.ports():
        keys = (kind, port.name)
        if not _NAME.fullmatch(port.name):
            expected = "letters, digits and underscores, not beginning with a digit"
            yield subject.report("port-name", keys, f"{kind} has {port.name!r}", expected)
        other = seen.setdefault(f"{kind}.{port.name.lower()}", port.name)
        if other != port.name:
            found = f"{port.name!r} and {other!r}, which Azure ML treats as the same name"
            yield subject.report("port-name-case", keys, found, "names that differ in more than case")


def types(subject: Subject) -> Iterator[Problem]:
    known = DATA | PARAMETERS | LEGACY
    for kind, port in subject.ports():
        if port.type not in known:
            found = f"type {port.type!r}" if port.type else "no type"
            expected = ", ".join(sorted(DATA | PARAMETERS))
            yield subject.report("port-type", (kind, port.name, "type"), found, expected, "use one of those")


def descriptions(subject: Subject) -> Iterator[Problem]:
    for kind, port in subject.ports():
        text = " ".join(port.description.split())
        if not text or text.rstrip(".").lower() in (port.name.lower(), port.name.lower().replace("_", " ")):
            found = f"{kind[:-1]} {port.name} has no description" if not text else f"description {text!r}"
            yield subject.report("port-description", (kind, port.name, "description"), found, "what it means")


def optional_marks(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        keys = ("inputs", port.name, "optional")
        if str(port.optional).lower() not in TRUE | FALSE:
            yield subject.report("optional-mark", keys, f"optional {port.optional!r}", "true or false")


def command_exists(subject: Subject) -> Iterator[Problem]:
    if subject.needs_command and not subject.command.strip():
        yield subject.report("command-missing", ("command",), "it has no command", "a command line")


def unread(subject: Subject) -> Iterator[Problem]:
    """Check that each port is used, except in Python, where linters find unused parameters."""
    if subject.path.suffix == ".py" or (subject.needs_command and not subject.command.strip()):
        return
    used = {(use.kind, use.name) for use in subject.uses} | set(_ports_in_code(subject))
    for kind, port in subject.ports():
        if (kind, port.name) not in used:
            verb = "reads" if kind == "inputs" else "writes"
            found = f"nothing {verb} the {kind[:-1]} {port.name}"
            yield subject.report("port-unused", (kind, port.name), found, f"a use: ${{{{{kind}.{port.name}}}}}")


def unknown(subject: Subject) -> Iterator[Problem]:
    existing = {(kind, port.name) for kind, port in subject.ports()}
    for use in dict.fromkeys(subject.uses):
        if (use.kind, use.name) not in existing:
            names = [name for kind, name in existing if kind == use.kind]
            fix = did_you_mean(use.name, names, f"add it to {use.kind}, or remove the reference")
            expected = ", ".join(sorted(names)) or f"no {use.kind}"
            found = f"${{{{{use.kind}.{use.name}}}}} does not name a port"
            yield finding("port-unknown", use.where, found, expected, fix)


def variables(subject: Subject) -> Iterator[Problem]:
    """Check the component's own variables, which azure-ai-ml 1.35.2 does not send."""
    for name in subject.variables:
        fix = f"set it in the command, {name}=VALUE python ..., or on the steps that use the component"
        found = f"the variable {name}, which azure-ai-ml does not send to Azure ML with a component"
        expected = "a component without environment variables"
        yield subject.report("component-variables", ("environment_variables", name), found, expected, fix)


def optional_uses(subject: Subject) -> Iterator[Problem]:
    optional = {port.name for port in subject.inputs if str(port.optional).lower() in TRUE and port.default is None}
    for use in dict.fromkeys(subject.uses):
        if use.kind == "inputs" and use.name in optional and not use.optional:
            found = f"the optional input {use.name} is outside of $[[ ]]"
            fix = f"write $[[--{use.name} ${{{{inputs.{use.name}}}}}]]"
            expected = "an optional part of the command: $[[ ... ]]"
            yield finding("optional-unguarded", use.where, found, expected, fix)


def _ports_in_code(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the ports that the code reads through the variables with their paths."""
    pattern = re.compile(r"AZURE_?ML_(INPUT|OUTPUT)_(\w+)")
    for path in subject.entries:
        for kind, name in pattern.findall(path.read_text(encoding="utf-8", errors="replace")):
            yield f"{kind.lower()}s", name


def ranges(subject: Subject) -> Iterator[Problem]:
    """Check the ranges. The SDK parses bounds like defaults, and refuses values outside of the range."""
    for port in subject.inputs:
        low, high = port.minimum, port.maximum
        if port.type not in NUMBERS:
            continue
        wrong = [(key, bound) for key, bound in (("min", low), ("max", high)) if not _parses(bound, port.type)]
        for key, bound in wrong:
            found = f"{key} {bound!r} of type {port.type}"
            yield subject.report("range-bound", ("inputs", port.name, key), found, EXPECTED[port.type])
        if not wrong and low is not None and high is not None and float(low) > float(high):
            found = f"min {low} is above max {high}"
            yield subject.report("range-order", ("inputs", port.name, "min"), found, "min at most max")


def enums(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.enum is None:
            continue
        keys = ("inputs", port.name, "enum")
        values = list(port.enum) if isinstance(port.enum, (list, tuple)) else []
        if port.type in DATA:
            yield subject.report("enum-of-data", keys, f"an enum of {port.type}", "an enum of texts or numbers")
        elif not isinstance(port.enum, (list, tuple)):
            yield subject.report("enum-list", keys, f"enum {port.enum!r}", "a list of values")
        for number, value in enumerate(values):
            item, expected, fix = (*keys, str(number)), "a text in an enum of type string", ""
            if port.type == "boolean":
                fix = "remove the enum: a boolean is true or false"
            elif port.type in NUMBERS:
                fix = "write type: string, with the values in quotes; or use min and max for a range of numbers"
            elif port.type == "string" and not isinstance(value, str):
                fix = subject.in_quotes(value, *item)  # YAML reads yes, no, on and off as booleans
            if fix:
                found = f"{subject.written(repr(value), *item)} in the enum of type {port.type}"
                yield subject.report("enum-type", item, found, expected, fix)


def defaults(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.default is None:
            continue
        keys = ("inputs", port.name, "default")
        if port.type in DATA:  # Input._update_default of the SDK raises
            found = f"default {port.default!r} of {port.type}"
            yield subject.report("default-of-data", keys, found, "no default: the designer connects data")
        elif port.type in PARAMETERS and not _parses(port.default, port.type):
            found = f"default {port.default!r} of type {port.type}"
            yield subject.report("default-type", keys, found, EXPECTED[port.type])
        elif port.type in PARAMETERS and port.type != "boolean" and isinstance(port.default, bool):
            # YAML's `no` becomes the text "False".
            fix = subject.in_quotes(port.default, *keys) if port.type == "string" else "write a number"
            found = f"default {port.default!r} of type {port.type}"
            yield subject.report("default-changed", keys, found, EXPECTED[port.type], fix)
        elif isinstance(port.enum, (list, tuple)) and str(port.default) not in map(str, port.enum):
            expected, fix = f"one of {', '.join(map(str, port.enum))}", "name one of those, or add it to the enum"
            yield subject.report("default-enum", keys, f"default {port.default!r}", expected, fix)
        elif outside := _outside(port):
            yield subject.report("default-range", keys, f"default {port.default}", outside)


def _parses(value: Any, kind: str) -> bool:
    """Return whether the SDK accepts the value for this type. Like `Input._parse`, accept numbers as texts."""
    if kind == "string" or value is None:
        return True
    if kind == "boolean":
        return str(value).lower() in ("true", "false")
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and (kind == "number" or number.is_integer())


def _outside(port: Port) -> str:
    """Return the bound that the default exceeds, for messages; "" if it is inside of the range."""
    if port.type not in NUMBERS:
        return ""
    default = float(port.default)
    if _parses(port.minimum, port.type) and port.minimum is not None and default < float(port.minimum):
        return f"at least {float(port.minimum):g}"
    if _parses(port.maximum, port.type) and port.maximum is not None and default > float(port.maximum):
        return f"at most {float(port.maximum):g}"
    return ""
