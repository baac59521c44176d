"""Patches of a text: spans that are replaced. Every other character stays as it is."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Patch:
    """Replace the characters from `start` to before `end` by `text`."""

    start: int
    end: int
    text: str


def applied(text: str, patches: Iterable[Patch], start: int = 0, end: int | None = None) -> str:
    """Return the text, or a part of it, with all patches, whose spans are those of the original text.

    Raise ValueError if two spans overlap. Patches at one place are inserted in their order.
    """
    parts: list[str] = []
    place = start
    for patch in sorted(patches, key=lambda each: (each.start, each.end)):
        if patch.start < place:
            raise ValueError(f"{patch} overlaps the patch before it")
        parts += text[place : patch.start], patch.text
        place = patch.end
    return "".join([*parts, text[place:end]])
