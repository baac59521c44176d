"""Check that an environment's copies of the base's stages and of setup_mpi.sh equal their sources, word for word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from allranks.environments import base_block
from allranks.environments.dockerfile import read
from allranks.environments.find import BASE, DOCKERFILE, EnvironmentFolder
from allranks.errors import Problem


def problems(environment: EnvironmentFolder, root: Path) -> Iterator[Problem]:
    yield from _copied_program(environment)
    own = environment.dockerfile
    if environment.name == BASE or not any(line.startswith(("FROM base", base_block.BEGIN)) for line in own.lines):
        return
    if base_block.block(own.lines) is None:
        fix = f"put the two marker lines before the first FROM, then run: allranks environments sync {environment.name}"
        where = f"{own.path}:{own.line_of('FROM base')}"
        yield Problem(where, "no block of the base", f"{base_block.BEGIN} ... {base_block.END}", fix)
        return
    base = read(root / BASE / DOCKERFILE)
    line = base_block.first_difference(own.lines, base.lines)
    if line is not None:
        own_range, base_range = base_block.block(own.lines), base_block.block(base.lines)
        assert own_range is not None
        assert base_range is not None
        expected = base.lines[base_range[0] + line - 1 - own_range[0] :][:1]
        yield Problem(
            where=f"{own.path}:{line}",
            found=own.lines[line - 1].strip(),
            expected=f"as in {base.path}: {(expected or ('nothing',))[0].strip()}",
            fix=f"change it there, then run: allranks environments sync {environment.name}",
        )


def _copied_program(environment: EnvironmentFolder) -> Iterator[Problem]:
    if not base_block.runs_setup_mpi(environment.dockerfile):
        return
    copy = environment.file(base_block.SETUP_MPI.name)
    expected = base_block.SETUP_MPI.read_text(encoding="utf-8").splitlines()
    fix = f"run: allranks environments sync {environment.name}"
    if not copy.exists():
        yield Problem(f"{copy}", "no such file", f"a copy of allranks' {copy.name}, which the Dockerfile runs", fix)
        return
    own = copy.read_text(encoding="utf-8").splitlines()
    pairs = enumerate(zip_longest(own, expected, fillvalue="nothing"), 1)
    for number, (line, wanted) in pairs:
        if line != wanted:
            yield Problem(f"{copy}:{number}", line.strip(), f"as in allranks: {wanted.strip()}", fix)
            return
