"""What a page shows of many nodes: which of them have room on it, and which stand folded behind "... 993 more"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from allranks.runs.page.item import Item

STEPS = 200
"""Steps that are shown one below the other before the others are folded."""
ITERATIONS = 20
"""Iterations of a loop, and other groups, that are shown one below the other before the others are folded."""
_WORTH = 4
"""Items that are worth a fold of their own."""


@dataclass(frozen=True)
class Stretch:
    """Siblings that follow each other. summary: what stands for them while they are folded; "" where they are shown."""

    items: tuple[Item, ...]
    summary: str = ""


def stretches(items: Sequence[Item]) -> list[Stretch]:
    """Part siblings into those that are shown and those that are folded.

    The first and the last are shown, and those that failed or are running. All are shown where they are few.
    """
    groups = sum(bool(item.children) for item in items)
    limit = ITERATIONS if 2 * groups > len(items) else STEPS
    if len(items) <= limit + _WORTH:
        return [Stretch(tuple(items))] if items else []
    shown = set(range(limit // 4)) | set(range(len(items) - limit // 4, len(items)))
    urgent = (place for place, item in enumerate(items) if item.needs_attention)
    shown |= {place for place, _ in zip(urgent, range(limit // 2), strict=False)}
    found: list[Stretch] = []
    for is_shown, run in groupby(enumerate(items), lambda pair: pair[0] in shown):
        part = tuple(item for _, item in run)
        if is_shown or len(part) < _WORTH:
            found.append(Stretch(part))
        else:
            found.append(Stretch(part, f"… {len(part):,} more: {states(part)}"))
    return found


def states(items: Iterable[Item]) -> str:
    """Return how many items have each state: ``990 Completed, 3 Failed``."""
    found = Counter(item.status for item in items)
    return ", ".join(f"{times:,} {status}" for status, times in found.most_common())


def runs(items: Iterable[Item]) -> list[tuple[bool, list[Item]]]:
    """Part siblings into groups, each alone (True), and steps that follow each other (False)."""
    found: list[tuple[bool, list[Item]]] = []
    for item in items:
        if item.children or not found or found[-1][0]:
            found.append((bool(item.children), [item]))
        else:
            found[-1][1].append(item)
    return found


def chosen(roots: Sequence[Item], budget: float, cost: Callable[[Item], float] = lambda _: 1) -> frozenset[int]:
    """Return the places of the items for which a page has room.

    Those that failed or are running come first, then those that are not behind a fold of `stretches`.
    """
    order: list[tuple[bool, int, int, float]] = []
    left = [(roots, 0)]
    while left:
        siblings, folds = left.pop()
        for stretch in stretches(siblings):
            behind = folds + bool(stretch.summary)
            for item in stretch.items:
                order.append((not item.needs_attention, behind, item.place, cost(item)))
                if item.children:
                    left.append((item.children, behind))
    places = []
    for _, _, place, amount in sorted(order):
        budget -= amount
        if budget < 0:
            break
        places.append(place)
    return frozenset(places)
