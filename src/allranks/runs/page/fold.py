"""Which nodes of a run a page shows, which are folded behind "... 993 more", and which are described in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from allranks.runs.formatting import count
from allranks.runs.page.item import Item, walk_items

STEPS = 200
"""Maximum steps in a list before some are folded."""
ITERATIONS = 20
"""Maximum iterations of a loop, or other groups, in a list before some are folded."""
_SMALLEST_FOLD = 4
"""Minimum items of a fold."""
_BUDGET = 6_000
"""Maximum lines of a page for inputs, outputs and ranks."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive siblings. summary: shown instead of them while they are folded; "" if they are not folded"""

    items: tuple[Item, ...]
    summary: str = ""


def stretches(items: Sequence[Item]) -> list[Stretch]:
    """Split siblings into stretches that are shown and stretches that are folded.

    The first and the last items are shown, and those that failed or are running. If there are few, all are shown.
    """
    groups = sum(bool(item.children) for item in items)
    limit = ITERATIONS if 2 * groups > len(items) else STEPS
    if len(items) <= limit + _SMALLEST_FOLD:
        return [Stretch(tuple(items))] if items else []
    shown = set(range(limit // 4)) | set(range(len(items) - limit // 4, len(items)))
    urgent = (place for place, item in enumerate(items) if item.needs_attention)
    shown |= {place for place, _ in zip(urgent, range(limit // 2), strict=False)}
    result: list[Stretch] = []
    for is_shown, run in groupby(enumerate(items), lambda pair: pair[0] in shown):
        members = tuple(item for _, item in run)
        if is_shown or len(members) < _SMALLEST_FOLD:
            result.append(Stretch(members))
        else:
            result.append(Stretch(members, f"… {len(members):,} more: {states(members)}"))
    return result


def states(items: Iterable[Item]) -> str:
    """Return how many items have each state: ``990 Completed, 3 Failed``."""
    counts = Counter(item.status for item in items)
    return ", ".join(f"{times:,} {status}" for status, times in counts.most_common())


def runs(items: Iterable[Item]) -> list[tuple[bool, list[Item]]]:
    """Split siblings into single groups (True) and sequences of consecutive steps (False)."""
    result: list[tuple[bool, list[Item]]] = []
    for item in items:
        if item.children or not result or result[-1][0]:
            result.append((bool(item.children), [item]))
        else:
            result[-1][1].append(item)
    return result


def chosen(roots: Sequence[Item], budget: float, cost: Callable[[Item], float] = lambda _: 1) -> frozenset[int]:
    """Return the places of the items that fit on a page.

    Items that failed or are running come first, then those that `stretches` does not fold.
    """
    order: list[tuple[bool, int, int, float]] = []
    stack = [(roots, 0)]
    while stack:
        siblings, folds = stack.pop()
        for stretch in stretches(siblings):
            depth = folds + bool(stretch.summary)
            for item in stretch.items:
                order.append((not item.needs_attention, depth, item.place, cost(item)))
                if item.children:
                    stack.append((item.children, depth))
    places = []
    for _, _, place, amount in sorted(order):
        budget -= amount
        if budget < 0:
            break
        places.append(place)
    return frozenset(places)


@dataclass(frozen=True)
class _Details:
    """full:     the places of the items that are described in full
    nested:   whether the run has groups
    left_out: a line about the others
    """

    full: frozenset[int]
    nested: bool
    left_out: str = ""


def details(items: Sequence[Item], run_id: str) -> _Details:
    """Return the items whose lines all fit on the page. Items that failed or are running come first."""
    all_items = list(walk_items(items))
    full = chosen(items, _BUDGET, _lines)
    nested = any(item.children for item in all_items)
    if len(full) == len(all_items):
        return _Details(full, nested)
    left_out = count(len(all_items) - len(full), "step")
    return _Details(full, nested, f"Inputs, outputs and ranks of {left_out}: allranks show {run_id} STEP")


def _lines(item: Item) -> int:
    record = item.record
    return 1 + len(record.inputs) + len(record.outputs) + len(record.ranks)
