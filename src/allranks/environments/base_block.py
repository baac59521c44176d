"""The block of stages that every environment on the base begins with, repeated in each Dockerfile word for word.

A registered environment is built from its own folder, and cannot start from an image that nobody has pushed. Equal
instructions are built once: every engine's cache uses their text as the key.
"""

from __future__ import annotations

from allranks.contract import mpi
from allranks.environments.dockerfile import Dockerfile

BEGIN, END = "# >>> base", "# <<< base"

SETUP_MPI = mpi.SETUP_MPI


def runs_setup_mpi(dockerfile: Dockerfile) -> bool:
    """Return whether a build of the Dockerfile copies and runs the program."""
    return any(each.name == "COPY" and SETUP_MPI.name in each.text.split() for each in dockerfile.instructions())


def block(lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the indices of the block's two marker lines; None if one is missing."""
    begin = next((index for index, line in enumerate(lines) if line.startswith(BEGIN)), None)
    end = next((index for index, line in enumerate(lines) if line.startswith(END)), None)
    return (begin, end) if begin is not None and end is not None and begin < end else None


def first_difference(own: tuple[str, ...], base: tuple[str, ...]) -> int | None:
    """Return the line, from 1, at which a Dockerfile's block differs from the base's; None if it does not.

    Both must have a block.
    """
    own_range, base_range = block(own), block(base)
    assert own_range is not None
    assert base_range is not None
    own_block, base_block = own[own_range[0] : own_range[1] + 1], base[base_range[0] : base_range[1] + 1]
    difference = next(
        (index for index, (ours, theirs) in enumerate(zip(own_block, base_block, strict=False)) if ours != theirs), None
    )
    if difference is None:
        return None if len(own_block) == len(base_block) else own_range[0] + min(len(own_block), len(base_block)) + 1
    return own_range[0] + difference + 1


def with_block(own: Dockerfile, base: Dockerfile) -> str:
    """Return a Dockerfile's text with its block replaced by the base's. Both must have one."""
    own_range, base_range = block(own.lines), block(base.lines)
    assert own_range is not None
    assert base_range is not None
    lines = own.lines[: own_range[0]] + base.lines[base_range[0] : base_range[1] + 1] + own.lines[own_range[1] + 1 :]
    return "\n".join(lines) + "\n"
