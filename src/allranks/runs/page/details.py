"""Which steps of a run the page describes in full, with inputs, outputs and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from allranks.runs.formatting import count
from allranks.runs.page.fold import chosen
from allranks.runs.page.item import Item, walk_items

_BUDGET = 6_000
"""Maximum lines of a page for inputs, outputs and ranks."""


@dataclass(frozen=True)
class Details:
    """full:     the places of the items that are described in full
    nested:   whether the run has groups
    left_out: a line about the others
    """

    full: frozenset[int]
    nested: bool
    left_out: str = ""


def details(items: Sequence[Item], run_id: str) -> Details:
    """Return the items whose lines all fit on the page. Items that failed or are running come first."""
    all_items = list(walk_items(items))
    full = chosen(items, _BUDGET, _lines)
    nested = any(item.children for item in all_items)
    if len(full) == len(all_items):
        return Details(full, nested)
    left_out = count(len(all_items) - len(full), "step")
    return Details(full, nested, f"Inputs, outputs and ranks of {left_out}: allranks show {run_id} STEP")


def _lines(item: Item) -> int:
    record = item.record
    return 1 + len(record.inputs) + len(record.outputs) + len(record.ranks)
