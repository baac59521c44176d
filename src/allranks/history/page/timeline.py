"""The timeline of a run: when each step and each of its ranks ran. The contents of a group are folded below its bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from allranks.history.formatting import elapsed
from allranks.history.nested import walk
from allranks.history.page.chart import Scale, Tick, time_scale
from allranks.history.page.items import Item, chosen, runs, stretches
from allranks.history.records import AttemptRecord, RankRecord, RunRecord, Status, StepRecord, earlier_attempts, pauses
from allranks.text import count, duration

WIDTH = 1040
LABELS = 180
AXIS = 22
_ROW = 26
_INDENT = 12
_DEEPEST = 5
"""Maximum levels of indentation of labels."""
_RANKS = 64
"""Maximum ranks of a step that are drawn individually."""
_ALL_RANKS = 2000
"""Maximum ranks of a run that are drawn individually."""
_ALL_ROWS = 2000
"""Maximum rows of a page."""


class Bar(NamedTuple):
    """A period of time, in pixels, with its description."""

    x: float
    y: float
    width: float
    height: float
    status: Status
    title: str


class Row(NamedTuple):
    """A node's bar (None if it did not run), its ranks' bars, and its duration or the reason for its absence.

    x:       where its label begins
    earlier: the bars of its earlier attempts
    importing: the first part of the bar, before the first rank started
    """

    step: StepRecord
    name: str
    x: float
    y: float
    bar: Bar | None
    ranks: tuple[Bar, ...]
    text: str
    earlier: tuple[Bar, ...] = ()
    importing: Bar | None = None


class Block(NamedTuple):
    """Rows that are drawn in one picture."""

    rows: tuple[Row, ...]
    height: float


class Fold(NamedTuple):
    """Parts that can be unfolded below the row of a group, or below a line of text if the head is None."""

    head: Block | None
    summary: str
    is_open: bool
    parts: tuple[Part, ...]


Part: TypeAlias = "Block | Fold"


@dataclass(frozen=True)
class Timeline:
    """The timeline. Times of `ticks` are seconds of execution since the start of the run; the time between two
    executions has no width.

    left_out: a line about the rows that do not fit
    pauses:   marks between two executions, with their descriptions
    """

    parts: tuple[Part, ...]
    ticks: tuple[Tick, ...]
    left_out: str
    pauses: tuple[Tick, ...] = ()

    @property
    def grid(self) -> str:
        """The data of an SVG path: one line per tick, as high as the largest picture."""
        return "".join(f"M{tick.at} 0V99999" for tick in (*self.ticks, *self.pauses))


def timeline(run: RunRecord, now: float, items: Sequence[Item]) -> Timeline | None:
    """Return the timeline of the run; None if no step has run. Running steps are drawn until `now`."""
    ran = [step for step in run.steps if step.started and not step.reused_from]
    if not ran:
        return None
    started = [step.started for step in ran if step.started]
    start = min([*started, run.created] if run.created else started)
    stop = max(step.ended if step.ended is not None else now for step in ran)
    time = _ExecutionTime(start, tuple(pauses(run, now)))
    scale, ticks = time_scale(max(time(stop), 0.001), LABELS, WIDTH - 34)
    between = [(begin, end) for begin, end in time.pauses if begin < stop]
    marks = tuple(Tick(scale(time(begin)), f"did not run for {duration(end - begin)}") for begin, end in between)
    drawn = chosen(items, _ALL_ROWS)
    one_by_one = sum(len(step.ranks) for step in ran) <= _ALL_RANKS
    parts = _Drawing(time, now, scale, one_by_one, drawn).parts(items, 0)
    missing = sum(1 for _ in walk(items)) - len(drawn)
    return Timeline(parts, tuple(ticks), f"… {count(missing, 'more row')}" if missing else "", marks)


@dataclass(frozen=True)
class _ExecutionTime:
    """Map moments to seconds of execution since the start of the run."""

    start: float
    pauses: tuple[tuple[float, float], ...]

    def __call__(self, moment: float) -> float:
        paused = sum(min(end, moment) - begin for begin, end in self.pauses if moment > begin)
        return max(moment - self.start - paused, 0.0)


@dataclass(frozen=True)
class _Drawing:
    """Values shared by the drawing of all rows. drawn: the places of the items that have a row"""

    time: _ExecutionTime
    now: float
    scale: Scale
    one_by_one: bool
    drawn: frozenset[int]

    def parts(self, items: Sequence[Item], level: int) -> tuple[Part, ...]:
        parts: list[Part] = []
        for stretch in stretches([item for item in items if item.place in self.drawn]):
            inner: list[Part] = []
            for is_group, run in runs(stretch.items):
                block = self._block(run, level)
                below = self.parts(run[0].children, level + 1) if is_group else ()
                inner.append(Fold(block, "", run[0].is_open, below) if below else block)
            parts += [Fold(None, stretch.summary, False, tuple(inner))] if stretch.summary else inner
        return tuple(parts)

    def _block(self, items: Sequence[Item], level: int) -> Block:
        rows, y = [], 0.0
        for item in items:
            row, y = self._row(item, y, min(level, _DEEPEST) * _INDENT)
            rows.append(row)
        return Block(tuple(rows), y)

    def _row(self, item: Item, y: float, x: float) -> tuple[Row, float]:
        step = item.record
        below = y + _ROW
        if step.reused_from:
            return Row(step, item.name, x, y, None, (), f"reused from {step.reused_from}"), below
        before = tuple(
            self._bar(each, y + 8, 10, " · ".join((step.name, f"attempt {each.number + 1}", each.status.label, took)))
            for each in earlier_attempts(step)
            for took in (duration(each.ended - each.started),)
        )
        if not step.started or step.status is Status.NOT_STARTED:
            return Row(step, item.name, x, y, None, (), step.status.label, before), below
        time = duration(self._took(step))
        attempt = f"attempt {step.attempt + 1}" if step.attempt else ""
        title = " · ".join(filter(None, (step.name, attempt, step.status.label, item.layout, time)))
        bar = self._bar(step, y + 8, 10, title)
        ranks = []
        if self.one_by_one and 1 < len(step.ranks) <= _RANKS:
            height = 4 if len(step.ranks) <= 16 else 2
            instance = None
            for rank in sorted(step.ranks, key=lambda rank: rank.rank):
                below += 3 if instance not in (None, rank.instance_rank) else 0
                instance = rank.instance_rank
                if rank.started:
                    ranks.append(self._bar(rank, below, height, _rank_title(rank, self.now)))
                below += height + 1.5
            below += 6
        return Row(step, item.name, x, y, bar, tuple(ranks), time, before, self._importing(step, y)), below

    def _importing(self, step: StepRecord, y: float) -> Bar | None:
        """Return the part of the last attempt's bar before its first rank started, if it can be seen."""
        if not step.ranks or not step.started:
            return None
        begin = step.started
        first = min((rank.started for rank in step.ranks if rank.started), default=step.ended or self.now)
        title = f"{step.name} · importing, before the first rank started · {duration(first - begin)}"
        bar = self._bar(AttemptRecord(step.attempt, step.status, begin, first), y + 8, 10, title)
        return bar if bar.width > 2 else None

    def _took(self, step: StepRecord) -> float | None:
        """Return the duration of a step. That of a group excludes the time between two executions."""
        took = elapsed(step, self.now)
        if took is None or step.started is None:
            return None
        return self.time(step.started + took) - self.time(step.started)

    def _bar(self, record: StepRecord | RankRecord | AttemptRecord, y: float, height: float, title: str) -> Bar:
        first = self.time(record.started or self.time.start)
        last = max(self.time(record.ended if record.ended is not None else self.now), first)
        # A rank's end may be slightly later than the run's own end.
        x, end = self.scale(min(first, self.scale.high)), self.scale(min(last, self.scale.high))
        return Bar(x, round(y, 1), max(round(end - x, 1), 2.0), height, record.status, title)


def _rank_title(rank: RankRecord, now: float) -> str:
    ended = rank.ended if rank.ended is not None else now
    end = rank.signal or (f"exit code {rank.exit_code}" if rank.exit_code else "")
    parts = (f"rank {rank.rank}", f"instance {rank.instance_rank}", rank.hostname, rank.status.label, end)
    return " · ".join([*filter(None, parts), duration(ended - (rank.started or ended))])
