"""Check the ports: names, types, descriptions and optional marks."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from allranks.components.check.subject import DATA, PARAMETERS, Subject
from allranks.errors import Problem

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def names(subject: Subject) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for kind, port in subject.ports():
        keys = (kind, port.name)
        if not _NAME.fullmatch(port.name) or keyword.iskeyword(port.name):
            expected = "letters, digits and underscores, no digit first, and no word of Python's own"
            yield subject.wrong(keys, f"{kind} has {port.name!r}", expected, "rename it, in the command too")
        other = seen.setdefault(f"{kind}.{port.name.lower()}", port.name)
        if other != port.name:
            found = f"{port.name!r} and {other!r}, which Azure ML treats as the same name"
            yield subject.wrong(keys, found, "names that differ in more than case", "rename one of the two")


def types(subject: Subject) -> Iterator[Problem]:
    known = DATA | PARAMETERS
    for kind, port in subject.ports():
        if port.type not in known:
            found = f"type {port.type!r}" if port.type else "no type"
            fix = "use one of those"
            yield subject.wrong((kind, port.name, "type"), found, ", ".join(sorted(known)), fix)


def descriptions(subject: Subject) -> Iterator[Problem]:
    for kind, port in subject.ports():
        text = " ".join(port.description.split())
        if not text or text.rstrip(".").lower() in (port.name.lower(), port.name.lower().replace("_", " ")):
            found = f"{kind[:-1]} {port.name} has no description" if not text else f"description {text!r}"
            fix = "describe it and its unit in a sentence; the form displays the description next to the field"
            yield subject.wrong((kind, port.name, "description"), found, "what it means", fix)


def optional_marks(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        keys = ("inputs", port.name, "optional")
        if not isinstance(port.optional, bool):
            yield subject.wrong(keys, f"optional {port.optional!r}", "true or false", "write one of them")
        elif port.optional and port.default is not None:
            found = f"input {port.name} is optional and has a default, so it is never omitted"
            fix = "remove either the default or optional"
            yield subject.wrong(keys, found, "one of the two", fix)
