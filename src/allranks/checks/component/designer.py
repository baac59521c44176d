"""Check what the studio refuses or does not show: the registration of a component by its form, and the designer."""

import os
from collections.abc import Iterator

from allranks.catalog.declared_ports import TRUE
from allranks.checks.component.subject import Subject
from allranks.errors import Problem, finding

_RESERVED = frozenset({"path", "ld_library_path", "user", "logname", "home", "pwd", "shell"})


def reserved_names(subject: Subject) -> Iterator[Problem]:
    """Check the names of ports, ignoring case: Azure ML treats names that differ only in case as the same."""
    for kind, port in subject.ports():
        if port.name.lower() in _RESERVED:
            found = f"{kind[:-1]} {port.name!r}, a name that Azure ML reserves"
            yield subject.report("reserved-name", (kind, port.name), found, f"none of {', '.join(sorted(_RESERVED))}")


def continued_lines(subject: Subject) -> Iterator[Problem]:
    """Check that no line of the command ends in a backslash, at the first line that does."""
    if "\\" in subject.command:
        for number, line in enumerate(subject.path.read_text(encoding="utf-8").splitlines(), 1):
            if line.rstrip().endswith("\\") and line.strip() in subject.command:
                place, expected = f"{subject.path}:{number}", "a command whose lines YAML joins"
                yield finding("line-continuation", place, "a line of the command ends in \\", expected)
                return


def registration(subject: Subject) -> Iterator[Problem]:
    """Check what the form of the studio can register: command components whose files are in their folder."""
    if subject.type != "command":
        yield subject.report("ui-type", ("type",), f"type {subject.type}", "type command, which the studio registers")
        return
    for keys, path in subject.local_paths:
        if os.path.isabs(path) or os.path.normpath(path).startswith(".."):
            yield subject.report("ui-outside-folder", keys, f"{path} is outside of the folder", "a path in the folder")


def boolean_defaults(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.type == "boolean" and port.default is None and str(port.optional).lower() not in TRUE:
            found, expected = f"the boolean {port.name} has no default", "true or false, in place of the form's Null"
            yield subject.report("ui-boolean-default", ("inputs", port.name), found, expected)
