"""The stages that every environment on the base begins with, which stand in each Dockerfile word for word.

A registered environment is built from its own folder, and cannot start from an image that nobody has pushed. Equal
instructions are built once: the cache of every engine knows them by their text.
"""

from __future__ import annotations

from allranks.environments.dockerfile import Dockerfile

BEGIN, END = "# >>> base", "# <<< base"


def block(lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Return where the block is: the indices of its two marker lines. None where a marker is missing."""
    begin = next((index for index, line in enumerate(lines) if line.startswith(BEGIN)), None)
    end = next((index for index, line in enumerate(lines) if line.startswith(END)), None)
    return (begin, end) if begin is not None and end is not None and begin < end else None


def first_difference(own: tuple[str, ...], base: tuple[str, ...]) -> int | None:
    """Return the line, from 1, at which the block of a Dockerfile differs from the base's; None where it does not.

    Both must have a block.
    """
    place, wanted = block(own), block(base)
    assert place is not None
    assert wanted is not None
    here, there = own[place[0] : place[1] + 1], base[wanted[0] : wanted[1] + 1]
    same = next((index for index, (one, other) in enumerate(zip(here, there, strict=False)) if one != other), None)
    if same is None:
        return None if len(here) == len(there) else place[0] + min(len(here), len(there)) + 1
    return place[0] + same + 1


def with_block(own: Dockerfile, base: Dockerfile) -> str:
    """Return the text of a Dockerfile with the base's block in the place of its own. Both must have one."""
    place, wanted = block(own.lines), block(base.lines)
    assert place is not None
    assert wanted is not None
    lines = own.lines[: place[0]] + base.lines[wanted[0] : wanted[1] + 1] + own.lines[place[1] + 1 :]
    return "\n".join(lines) + "\n"
