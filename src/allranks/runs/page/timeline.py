"""When each step and each of its ranks ran, on one axis of time."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.runs.formatting import duration, elapsed, step_layout
from allranks.runs.page.scale import Scale, Tick, time_scale
from allranks.runs.records import RankRecord, RunRecord, Status, StepRecord

WIDTH = 1040
LABELS = 180
_ROW = 26
_AXIS = 22
_RANKS = 64
"""Ranks of a step that are drawn one by one."""
_ALL_RANKS = 2000
"""Ranks of a run that are drawn one by one."""


@dataclass(frozen=True)
class Bar:
    """A stretch of time, in pixels, with what is said of it."""

    x: float
    y: float
    width: float
    height: float
    status: Status
    title: str


@dataclass(frozen=True)
class Row:
    """A step's bar (None where it did not run), its ranks' bars, and the time that it took or why there is none."""

    step: StepRecord
    y: float
    bar: Bar | None
    ranks: tuple[Bar, ...]
    text: str


@dataclass(frozen=True)
class Timeline:
    """Times below `ticks` are seconds since the run began."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    height: float


def timeline(run: RunRecord, now: float) -> Timeline | None:
    """The run as bars; what goes on lasts until `now`. None where no step has run."""
    ran = [step for step in run.steps if step.started and not step.reused_from]
    if not ran:
        return None
    start = min(step.started for step in ran if step.started)
    start = min(start, run.created or start)
    stop = max(step.ended if step.ended is not None else now for step in ran)
    scale, ticks = time_scale(max(stop - start, 0.001), LABELS, WIDTH - 24)
    one_by_one = sum(len(step.ranks) for step in ran) <= _ALL_RANKS
    rows = []
    y = float(_AXIS)
    for step in run.steps:
        row, below = _row(step, y, start, now, scale, one_by_one)
        rows.append(row)
        y = below
    return Timeline(tuple(rows), tuple(ticks), y + 4)


def _row(step: StepRecord, y: float, start: float, now: float, scale: Scale, one_by_one: bool) -> tuple[Row, float]:
    below = y + _ROW
    if step.reused_from:
        return Row(step, y, None, (), f"reused from {step.reused_from}"), below
    if not step.started:
        return Row(step, y, None, (), str(step.status)), below
    time = duration(elapsed(step, now))
    bar = _bar(step, y + 8, 10, start, now, scale, f"{step.name} · {step.status} · {step_layout(step)} · {time}")
    ranks = []
    if one_by_one and 1 < len(step.ranks) <= _RANKS:
        height = 4 if len(step.ranks) <= 16 else 2
        instance = None
        for rank in sorted(step.ranks, key=lambda rank: rank.rank):
            below += 3 if instance not in (None, rank.instance_rank) else 0
            instance = rank.instance_rank
            if rank.started:
                ranks.append(_bar(rank, below, height, start, now, scale, _rank_title(rank, now)))
            below += height + 1.5
        below += 6
    return Row(step, y, bar, tuple(ranks), time), below


def _bar(
    record: StepRecord | RankRecord, y: float, height: float, start: float, now: float, scale: Scale, title: str
) -> Bar:
    first = max((record.started or start) - start, 0.0)
    last = max((record.ended if record.ended is not None else now) - start, first)
    # Ranks' clocks may run past the run's own end by a little.
    x, end = scale(min(first, scale.high)), scale(min(last, scale.high))
    return Bar(x, round(y, 1), max(round(end - x, 1), 2.0), height, record.status, title)


def _rank_title(rank: RankRecord, now: float) -> str:
    ended = rank.ended if rank.ended is not None else now
    parts = [f"rank {rank.rank}", f"instance {rank.instance_rank}", rank.hostname, str(rank.status)]
    if rank.signal:
        parts.append(rank.signal)
    elif rank.exit_code:
        parts.append(f"exit code {rank.exit_code}")
    return " · ".join([*(part for part in parts if part), duration(ended - (rank.started or ended))])
