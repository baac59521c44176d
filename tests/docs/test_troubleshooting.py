"""Each code of a message has a section in docs/reference/troubleshooting.md, and each section a message."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from allranks.cli.commands import why
from allranks.cli.commands.why import sections
from allranks.cli.main import app
from allranks.verdict import signatures
from documents import pages

PROJECT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"`allranks ([^`]+)`")


def codes() -> Iterator[str]:
    """Yield the codes of signatures, and of the source: texts and constants that are passed as `code`."""
    yield from (signature.code for signature in signatures.table())
    for file in (PROJECT / "src" / "allranks").rglob("*.py"):
        module = ast.parse(file.read_text(encoding="utf-8"))
        constants = {
            node.targets[0].id: node.value
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(module):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                value: Any = keyword.value
                if isinstance(value, ast.Name):
                    value = constants.get(value.id)
                if keyword.arg == "code" and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def test_codes_and_sections_are_the_same() -> None:
    assert set(codes()) == set(sections())


def test_the_page_is_that_of_the_documentation() -> None:
    assert why.page() == PROJECT / "docs/reference/troubleshooting.md"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_commands_in_a_text_exist_and_have_these_options(page: Path) -> None:
    assert [text for text in COMMAND.findall(page.read_text(encoding="utf-8")) if unknown(text.split())] == []


def unknown(words: list[str]) -> list[str]:
    """Return the command or the options that do not exist."""
    command: Any = get_command(app)
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        name, *words = words
        if name not in command.list_commands(None):
            return [name]
        command = command.get_command(None, name)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]


def test_the_check_of_commands_finds_what_does_not_exist() -> None:
    assert unknown(["schedules", "nxt"]) == ["nxt"]
    assert unknown(["run", "FILE", "--sett", "a=b"]) == ["--sett"]
    assert unknown(["run", "FILE", "--set", "a=b"]) == []
