"""A Dockerfile as plain data: its instructions, the table of versions at its top, its stages, and its labels.

Every environment on the base begins with the same block of stages, repeated in each Dockerfile word for word: a
registered environment is built from its own folder, and cannot start from an image that was not pushed. Equal
instructions are built once, because every engine's cache uses their text as the key. The labels that an environment is
registered with follow from the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from allranks.errors import InputError, Problem

SETUP_MPI = Path(__file__).with_name("setup_mpi.sh")
"""Configures ssh for mpirun in an image. Each environment has a copy, because a build reads only its own folder."""

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
        raise InputError(Problem(str(path), reason, "a Dockerfile", "write one, or use another folder")) from error
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


BEGIN, END = "# >>> base", "# <<< base"


def runs_setup_mpi(dockerfile: Dockerfile) -> bool:
    """Return whether a build of the Dockerfile copies and runs the program."""
    return any(each.name == "COPY" and SETUP_MPI.name in each.text.split() for each in dockerfile.instructions())


def block(lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the indices of the block's two marker lines; None if one is missing."""
    begin = next((index for index, line in enumerate(lines) if line.startswith(BEGIN)), None)
    end = next((index for index, line in enumerate(lines) if line.startswith(END)), None)
    return (begin, end) if begin is not None and end is not None and begin < end else None


def first_difference(own: Iterable[str], expected: Iterable[str]) -> tuple[int, str, str] | None:
    """Return the number of the first line that differs, from 1, and both lines; None if none does."""
    pairs = enumerate(zip_longest(own, expected, fillvalue="nothing"), 1)
    return next(((number, *lines) for number, lines in pairs if lines[0] != lines[1]), None)


def with_block(own: Dockerfile, base: Dockerfile) -> str:
    """Return a Dockerfile's text with its block replaced by the base's. Both must have one."""
    own_range, base_range = block(own.lines), block(base.lines)
    assert own_range is not None
    assert base_range is not None
    lines = own.lines[: own_range[0]] + base.lines[base_range[0] : base_range[1] + 1] + own.lines[own_range[1] + 1 :]
    return "\n".join(lines) + "\n"


VERSION = "ENVIRONMENT_VERSION"
_SUFFIX = "_VERSION"


@dataclass(frozen=True)
class Labels:
    version: str
    description: str
    tags: Mapping[str, str]


def labels_of(dockerfile: Dockerfile) -> Labels:
    """Return the labels of a Dockerfile.

    version:     the table's ENVIRONMENT_VERSION
    description: the Dockerfile's first line
    tags:        the base image, and each NAME_VERSION as name: version
    """
    versions = {
        key_of(row.name): row.value
        for row in dockerfile.table
        if row.name.endswith(_SUFFIX) and row.name not in (VERSION, "BASE_IMAGE")
    }
    title = dockerfile.lines[0].removeprefix("#").strip() if dockerfile.lines else ""
    return Labels(
        version=dockerfile.values().get(VERSION, ""),
        description=title,
        tags={"base-image": dockerfile.values().get("BASE_IMAGE", ""), **versions},
    )


def key_of(row: str) -> str:
    """Return the tag of a row of the table: mlflow-skinny for MLFLOW_SKINNY_VERSION."""
    return row.removesuffix(_SUFFIX).lower().replace("_", "-")
