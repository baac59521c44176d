"""Check the ports: names, types, descriptions and optional marks."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from allranks.checks.component.subject import DATA, FALSE, PARAMETERS, TRUE, Subject
from allranks.checks.plan.rule import Level, Rule
from allranks.errors import Problem

LEGACY = frozenset({"path"})
"""Types of earlier versions, which azure-ai-ml still takes (SUPPORTED_PORT_TYPES)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")

PORT_NAME = Rule(
    "port-name",
    Level.ERROR,
    "A port's name has other characters than letters, digits and underscores, or a digit first.",
    "azure-ai-ml, `entities/_component/component.py`, Component._validate_io_names",
    "rename it, in the command too",
)
PORT_KEYWORD = Rule(
    "port-keyword",
    Level.WARNING,
    "A port's name is a keyword of Python, so that a pipeline in Python cannot name it.",
    "Python, https://docs.python.org/3/reference/lexical_analysis.html#keywords",
    "rename it, in the command too",
)
PORT_NAME_CASE = Rule(
    "port-name-case",
    Level.ERROR,
    "Two ports have names that differ in case only.",
    "azure-ai-ml, `entities/_component/component.py`, Component._validate_io_names",
    "rename one of the two",
)
PORT_TYPE = Rule(
    "port-type",
    Level.ERROR,
    "A port has no type, or one that Azure ML does not have.",
    "azure-ai-ml, `_schema/component/input_output.py`, SUPPORTED_PORT_TYPES and SUPPORTED_PARAM_TYPES",
    "use one of the types",
)
PORT_DESCRIPTION = Rule(
    "port-description",
    Level.ADVICE,
    "A port has no description, or its description is its name.",
    "style",
    "describe it and its unit in a sentence; the form displays the description next to the field",
)
OPTIONAL_MARK = Rule(
    "optional-mark",
    Level.ERROR,
    "`optional` is neither true nor false.",
    "azure-ai-ml, `_schema/component/input_output.py`: optional is fields.Bool",
    "write one of them",
)
OPTIONAL_DEFAULT = Rule(
    "optional-default",
    Level.ADVICE,
    "An input is optional and has a default, so it is never omitted.",
    "style",
    "remove either the default or optional",
)


def names(subject: Subject) -> Iterator[Problem]:
    """Check the names as azure-ai-ml does (Component._validate_io_names)."""
    seen: dict[str, str] = {}
    for kind, port in subject.ports():
        keys = (kind, port.name)
        if keyword.iskeyword(port.name):
            found = f"{kind} has {port.name!r}, a keyword of Python"
            yield subject.report(PORT_KEYWORD, keys, found, "a name that a pipeline in Python can use")
        elif not _NAME.fullmatch(port.name):
            expected = "letters, digits and underscores, no digit first"
            yield subject.report(PORT_NAME, keys, f"{kind} has {port.name!r}", expected)
        other = seen.setdefault(f"{kind}.{port.name.lower()}", port.name)
        if other != port.name:
            found = f"{port.name!r} and {other!r}, which Azure ML treats as the same name"
            yield subject.report(PORT_NAME_CASE, keys, found, "names that differ in more than case")


def types(subject: Subject) -> Iterator[Problem]:
    known = DATA | PARAMETERS | LEGACY
    for kind, port in subject.ports():
        if port.type not in known:
            found = f"type {port.type!r}" if port.type else "no type"
            expected = ", ".join(sorted(DATA | PARAMETERS))
            yield subject.report(PORT_TYPE, (kind, port.name, "type"), found, expected, "use one of those")


def descriptions(subject: Subject) -> Iterator[Problem]:
    for kind, port in subject.ports():
        text = " ".join(port.description.split())
        if not text or text.rstrip(".").lower() in (port.name.lower(), port.name.lower().replace("_", " ")):
            found = f"{kind[:-1]} {port.name} has no description" if not text else f"description {text!r}"
            yield subject.report(PORT_DESCRIPTION, (kind, port.name, "description"), found, "what it means")


def optional_marks(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        keys = ("inputs", port.name, "optional")
        if str(port.optional).lower() not in TRUE | FALSE:
            yield subject.report(OPTIONAL_MARK, keys, f"optional {port.optional!r}", "true or false")
        elif port.is_optional and port.default is not None:
            found = f"input {port.name} is optional and has a default, so it is never omitted"
            yield subject.report(OPTIONAL_DEFAULT, keys, found, "one of the two")
