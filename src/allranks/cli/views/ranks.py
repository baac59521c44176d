"""Render the ranks of a step in one line."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from rich.text import Text

from allranks.cli.views.states import STYLES, symbol
from allranks.runs.records import RankRecord, Status, StepRecord

MOST = 64
"""Maximum number of ranks with one glyph each; more ranks are counted by state."""


def ranks_line(step: StepRecord, width: int) -> Text:
    """Return one glyph per rank, with a space between instances if the width allows; counts if there are too many
    ranks."""
    ranks = sorted(step.ranks, key=lambda rank: rank.rank)
    instances = [list(group) for _, group in groupby(ranks, key=lambda rank: rank.instance_rank)]
    if len(ranks) > min(MOST, width):
        return _counts(ranks)
    apart = " " if len(ranks) + len(instances) - 1 <= width else ""
    return Text(apart).join(Text().join(symbol(rank.status) for rank in group) for group in instances)


def _counts(ranks: list[RankRecord]) -> Text:
    tally = Counter(rank.status for rank in ranks)
    parts = (
        Text.assemble(symbol(status), (f" {tally[status]:,} {status}", STYLES[status]))
        for status in Status
        if tally[status]
    )
    return Text("  ").join(parts)
