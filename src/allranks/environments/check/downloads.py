"""Check that everything that a build downloads is identified by a checksum or a commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.dockerfile import Instruction
from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem

_COMMIT = re.compile(r"_COMMIT=[0-9a-f]{40}$")


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    for instruction in environment.dockerfile.instructions():
        where = f"{environment.dockerfile.path}:{instruction.line}"
        if _fetches_file(instruction) and "sha256sum --check" not in instruction.text:
            fix = "add to the same RUN: sha256sum --check, with the sum from the table"
            yield Problem(where, "a download without a checksum", "one that is compared before it is used", fix)
        if re.search(r"\bgit (clone|fetch)\b", instruction.text) and "_COMMIT}" not in instruction.text:
            fix = "name a commit in the table (ARG NAME_COMMIT=...), and fetch that"
            yield Problem(where, "a repository without a commit", "one commit", fix)
    for row in environment.dockerfile.table:
        if row.name.endswith("_COMMIT") and not _COMMIT.search(f"{row.name}={row.value}"):
            where = f"{environment.dockerfile.path}:{row.line}"
            fix = "write the commit that the branch or tag names"
            yield Problem(where, f"{row.name}={row.value}", "a commit's 40 hexadecimal digits", fix)


def _fetches_file(instruction: Instruction) -> bool:
    text = instruction.text
    if instruction.name == "ADD":
        return "://" in text and "--checksum=" not in text
    return instruction.name == "RUN" and bool(re.search(r"\b(curl|wget)\b[^&]*(://|--output|-O)", text))
