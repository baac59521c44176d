"""A Dockerfile as plain data: its instructions, the table of versions at its top, and its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

_FROM = re.compile(r"(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True)
class Instruction:
    """line, end: its first and last line, from 1; text: what follows its name, in one line, without comments."""

    line: int
    end: int
    name: str
    text: str


@dataclass(frozen=True)
class Row:
    """One line of the version table: ARG NAME=value before the first FROM."""

    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Stage:
    """image: what follows FROM, with variables; instructions: those after FROM."""

    name: str
    image: str
    start: Instruction
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Dockerfile:
    path: Path
    lines: tuple[str, ...]
    table: tuple[Row, ...]
    stages: tuple[Stage, ...]

    def value(self, name: str) -> str | None:
        """Return the table's value for a name; None if the table has no such row."""
        return next((row.value for row in self.table if row.name == name), None)

    def values(self) -> dict[str, str]:
        return {row.name: row.value for row in self.table}

    def line_of(self, text: str) -> int:
        """Return the number of the first line that contains a text; 1 if none does."""
        return next((number for number, line in enumerate(self.lines, 1) if text in line), 1)

    def instructions(self) -> tuple[Instruction, ...]:
        """Return the instructions of all stages, FROM included."""
        return tuple(each for stage in self.stages for each in (stage.start, *stage.instructions))


def read(path: Path) -> Dockerfile:
    """Read a Dockerfile. Raise InputError if it cannot be read or has no stage."""
    try:
        lines = tuple(path.read_text(encoding="utf-8").splitlines())
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(Problem(str(path), reason, "a Dockerfile", "write one, or go elsewhere")) from error
    instructions = _instructions(lines)
    starts = [index for index, each in enumerate(instructions) if each.name == "FROM"]
    if not starts:
        raise InputError(Problem(str(path), "no FROM", "at least one stage", "add: FROM ${BASE_IMAGE} AS NAME"))
    return Dockerfile(path, lines, _table(instructions[: starts[0]]), _stages(instructions, starts))


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its variables replaced; those without a value stay."""
    return _VARIABLE.sub(lambda match: values.get(match[1] or match[2], match[0]), text)


def _instructions(lines: tuple[str, ...]) -> list[Instruction]:
    instructions: list[Instruction] = []
    parts: list[str] = []
    first = 0
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        first = first or number
        continues = stripped.endswith("\\")
        parts.append(stripped.rstrip("\\").strip())
        if not continues:
            name, _, text = " ".join(parts).partition(" ")
            instructions.append(Instruction(first, number, name.upper(), text.strip()))
            parts, first = [], 0
    return instructions


def _table(preamble: list[Instruction]) -> tuple[Row, ...]:
    pairs = [(each, *each.text.partition("=")) for each in preamble if each.name == "ARG"]
    return tuple(Row(name, value.strip("\"'"), each.line) for each, name, _, value in pairs)


def _stages(instructions: list[Instruction], starts: list[int]) -> tuple[Stage, ...]:
    stages = []
    for position, (start, end) in enumerate(zip(starts, [*starts[1:], len(instructions)], strict=True)):
        match = _FROM.match(instructions[start].text)
        image, name = (match["image"], match["name"]) if match else (instructions[start].text, None)
        stages.append(Stage(name or str(position), image, instructions[start], tuple(instructions[start + 1 : end])))
    return tuple(stages)
