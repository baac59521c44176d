"""Check the name, version, display name, description and tags of a component, and whether it may be reused."""

import re
from collections.abc import Iterator
from functools import partial

from allranks.checks.component.subject import Subject
from allranks.errors import Problem

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MAX_LENGTH = 255
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MIN_LENGTH = 20


def name(subject: Subject) -> Iterator[Problem]:
    """Check the name as azure-ai-ml does (PythonFuncNameStr in its _schema/core/fields.py)."""
    if not _NAME.fullmatch(subject.name):
        expected = "lower-case letters, digits and underscores, beginning with a letter"
        yield subject.report("component-name", ("name",), f"name {subject.name!r}", expected)
    elif len(subject.name) > _MAX_LENGTH:
        found, expected = f"a name of {len(subject.name)} characters", f"at most {_MAX_LENGTH} characters"
        yield subject.report("component-name", ("name",), found, expected, "shorten it")


def version(subject: Subject) -> Iterator[Problem]:
    value = subject.version
    if value is None:
        yield subject.report("version-missing", ("version",), "no version", "such as 1.0.0")
    elif isinstance(value, float):
        found = f"version {value}, which YAML reads as a number: 1.10 becomes 1.1"
        yield subject.report("version-number", ("version",), found, "a text", subject.in_quotes(value, "version"))
    elif not _VERSION.fullmatch(str(value)):
        expected = "letters, digits, dots, hyphens and underscores, at most 100"
        yield subject.report("version-characters", ("version",), f"version {value!r}", expected)


def display_name(subject: Subject) -> Iterator[Problem]:
    text, report = subject.display_name, partial(subject.report, "display-name", ("display_name",))
    if not text:
        fix = f"add: display_name: {subject.name.replace('_', ' ').capitalize()}"
        yield report("no display name", "the title of the card in the palette", fix)
    elif text == subject.name and "_" in text:
        fix = f"use words: {text.replace('_', ' ').capitalize()}"
        yield report(f"display name {text!r}, which is the name", "words", fix)
    elif len(text) > 60 or "\n" in text:
        fix = "shorten it, and move details to the description"
        yield report(f"a display name of {len(text)} characters", "at most 60", fix)


def description(subject: Subject) -> Iterator[Problem]:
    text = subject.description
    if not text:
        yield subject.report("description", ("description",), "no description", "what the component does")
    elif len(text) < _MIN_LENGTH or text in (subject.name, subject.display_name):
        yield subject.report("description", ("description",), f"description {text!r}", "a sentence")


def tags(subject: Subject) -> Iterator[Problem]:
    for key, value in subject.tags.items():
        if not isinstance(value, str):  # fields.Str in the SDK's _schema/component/component.py
            fix = subject.in_quotes(value, "tags", str(key))
            yield subject.report("tag-text", ("tags", str(key)), f"tag {key}: {value!r}", "a text", fix)


def determinism(subject: Subject) -> Iterator[Problem]:
    if subject.deterministic is None:
        expected = "is_deterministic: true or false; the default is true: Azure ML reuses results"
        found = "nothing says whether it is deterministic"
        yield subject.report("determinism-unset", ("is_deterministic",), found, expected)


def unique_names(subjects: list[Subject]) -> Iterator[Problem]:
    """Check that no two components have the same name and version."""
    names: dict[tuple[str, str], Subject] = {}
    for subject in subjects:
        other = names.setdefault((subject.name, str(subject.version)), subject)
        if subject.name and other is not subject:
            found = f"name {subject.name!r}, which {other.path} also has"
            yield subject.report("duplicate-name", ("name",), found, "one component of each name and version")
