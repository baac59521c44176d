"""Check the name, version, display name, description and tags of a component."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.components.check.subject import Subject
from allranks.errors import Problem

GROUPS = ("task", "category")
"""Tags by which the palette groups components. The first one that a component has is used."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,254}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MIN_LENGTH = 20


def group_of(tags: dict[str, str]) -> str:
    """Return the palette group of a component with these tags; "" if there is none."""
    return next((str(tags[key]) for key in GROUPS if tags.get(key)), "")


def name(subject: Subject) -> Iterator[Problem]:
    if not _NAME.fullmatch(subject.name):
        expected = "lower-case letters, digits and underscores, a letter first"
        yield subject.wrong(("name",), f"name {subject.name!r}", expected, "rename it: Azure ML refuses others")


def version(subject: Subject) -> Iterator[Problem]:
    value = subject.version
    if value is None:
        yield subject.wrong(("version",), "no version", "such as 1.0.0", 'add: version: "1.0.0"')
    elif not isinstance(value, str):
        found = f"version {value}, which YAML reads as a number: 1.10 becomes 1.1"
        yield subject.wrong(("version",), found, "a text", f'put it in quotes: version: "{value}"')
    elif not _VERSION.fullmatch(value):
        expected = "letters, digits, dots, hyphens and underscores, at most 100"
        yield subject.wrong(("version",), f"version {value!r}", expected, "such as 1.0.0")


def display_name(subject: Subject) -> Iterator[Problem]:
    text = subject.display_name
    if not text:
        fix = f"add: display_name: {subject.name.replace('_', ' ').capitalize()}"
        yield subject.wrong(("display_name",), "no display name", "what the card in the palette says", fix)
    elif text == subject.name and "_" in text:
        fix = f"use words: {text.replace('_', ' ').capitalize()}"
        yield subject.wrong(("display_name",), f"display name {text!r}, which is the name", "words", fix)
    elif len(text) > 60 or "\n" in text:
        fix = "shorten it, and move details to the description"
        yield subject.wrong(("display_name",), f"a display name of {len(text)} characters", "at most 60", fix)


def description(subject: Subject) -> Iterator[Problem]:
    text = subject.description
    fix = "describe the inputs, the work and the outputs in a sentence"
    if not text:
        yield subject.wrong(("description",), "no description", "what the component does", fix)
    elif len(text) < _MIN_LENGTH or text in (subject.name, subject.display_name):
        yield subject.wrong(("description",), f"description {text!r}", "a sentence", fix)


def tags(subject: Subject) -> Iterator[Problem]:
    if not any(subject.tags.get(key) for key in GROUPS):
        found = f"tags {', '.join(map(str, subject.tags))}" if subject.tags else "no tags"
        expected = f"a tag {' or '.join(GROUPS)}, by which the palette groups components"
        yield subject.wrong(("tags",), found, expected, "add: tags: {task: ...}, with a word that others have too")
    for key, value in subject.tags.items():
        if not isinstance(value, str):
            fix = f'put it in quotes: {key}: "{value}"'
            yield subject.wrong(("tags", str(key)), f"tag {key}: {value!r}", "a text", fix)


def _duplicates(subjects: list[Subject], key: str, what: str, of: str) -> Iterator[Problem]:
    first: dict[str, Subject] = {}
    for subject in subjects:
        value = str(getattr(subject, key))
        other = first.setdefault(value, subject)
        if value and other is not subject:
            found = f"{what} {value!r}, which {other.path} also has"
            yield subject.wrong((key,), found, f"one {of}", "rename one of them")


def unique_names(subjects: list[Subject]) -> Iterator[Problem]:
    """Check that no two components have the same name or display name."""
    yield from _duplicates(subjects, "name", "name", "component of each name")
    yield from _duplicates(subjects, "display_name", "display name", "card of each name")
