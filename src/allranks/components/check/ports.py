"""Check the ports: names, types, descriptions and optional marks."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from allranks.components.check.subject import DATA, FALSE, PARAMETERS, TRUE, Finding, Subject

LEGACY = frozenset({"path"})
"""Types of earlier versions, which azure-ai-ml still takes (SUPPORTED_PORT_TYPES)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def names(subject: Subject) -> Iterator[Finding]:
    """Check the names as azure-ai-ml does (Component._validate_io_names). Python's words break its functions."""
    seen: dict[str, str] = {}
    for kind, port in subject.ports():
        keys = (kind, port.name)
        if not _NAME.fullmatch(port.name) or keyword.iskeyword(port.name):
            expected = "letters, digits and underscores, no digit first, and no word of Python's own"
            yield subject.error(keys, f"{kind} has {port.name!r}", expected, "rename it, in the command too")
        other = seen.setdefault(f"{kind}.{port.name.lower()}", port.name)
        if other != port.name:
            found = f"{port.name!r} and {other!r}, which Azure ML treats as the same name"
            yield subject.error(keys, found, "names that differ in more than case", "rename one of the two")


def types(subject: Subject) -> Iterator[Finding]:
    known = DATA | PARAMETERS | LEGACY
    for kind, port in subject.ports():
        if port.type not in known:
            found = f"type {port.type!r}" if port.type else "no type"
            expected = ", ".join(sorted(DATA | PARAMETERS))
            yield subject.error((kind, port.name, "type"), found, expected, "use one of those")


def descriptions(subject: Subject) -> Iterator[Finding]:
    for kind, port in subject.ports():
        text = " ".join(port.description.split())
        if not text or text.rstrip(".").lower() in (port.name.lower(), port.name.lower().replace("_", " ")):
            found = f"{kind[:-1]} {port.name} has no description" if not text else f"description {text!r}"
            fix = "describe it and its unit in a sentence; the form displays the description next to the field"
            yield subject.advice((kind, port.name, "description"), found, "what it means", fix)


def optional_marks(subject: Subject) -> Iterator[Finding]:
    for port in subject.inputs:
        keys = ("inputs", port.name, "optional")
        if str(port.optional).lower() not in TRUE | FALSE:
            yield subject.error(keys, f"optional {port.optional!r}", "true or false", "write one of them")
        elif port.is_optional and port.default is not None:
            found = f"input {port.name} is optional and has a default, so it is never omitted"
            fix = "remove either the default or optional"
            yield subject.advice(keys, found, "one of the two", fix)
