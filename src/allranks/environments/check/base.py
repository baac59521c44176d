"""Check that a Dockerfile's copy of the base's stages equals the base, word for word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.environments import base_block
from allranks.environments.dockerfile import read
from allranks.environments.find import BASE, DOCKERFILE, EnvironmentFolder
from allranks.errors import Problem


def problems(environment: EnvironmentFolder, root: Path) -> Iterator[Problem]:
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
