"""The resource usage of each step on the page: a line, and charts over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from allranks.runs.page.chart import SERIES, Chart, Curve, make_chart
from allranks.runs.records import Point, Status, StepRecord
from allranks.runs.usage import RankUsage, Rate, cpu_rates, of_rank, traffic_rates
from allranks.runs.usage_text import cpu_of_ranks, gpu_memory_of_ranks, memory_of_ranks

_POINTS = 96
"""Maximum points of a curve."""

_Values = dict[str, list[tuple[float, float]]]
"""Curves by name: pairs of a time and a value."""

_BUDGET = 12_000
"""Maximum points of all curves of a page, of which each takes some 40 bytes."""

_SHORTEST = 3
"""Samples of the shortest step that has charts."""

LOOPBACK = "loopback"
NO_NETWORK = "Network: not measured, because loopback instances share the network of this machine."
PER_INSTANCE = "Network: of each instance, because its ranks share it."


@dataclass(frozen=True)
class StepUsage:
    """The usage of a step. facts: pairs of a name and a value; note: a line about what is measured"""

    facts: tuple[tuple[str, str], ...]
    charts: tuple[Chart, ...] = ()
    note: str = ""


def usage_of(steps: Iterable[StepRecord], instances: str, now: float) -> dict[str, StepUsage]:
    """Return the usage of the steps by name, without those of which nothing is known.

    instances: the kind of instances of the run
    now:       end of what is still running, in seconds since the epoch
    """
    budget = _BUDGET
    usage = {}
    for step in steps:
        if step.reused_from or not (facts := _facts(step, now)):
            continue
        charts: list[Chart] = []
        if max(map(len, step.usage.values()), default=0) >= _SHORTEST:
            charts = _charts(step)
            cost = sum(len(series.points) for chart in charts for series in chart.series)
            charts = charts if cost <= budget else []
            budget -= cost if charts else 0
        note = ""
        if charts and step.instance_count > 1:
            note = NO_NETWORK if instances == LOOPBACK else PER_INSTANCE
        usage[step.name] = StepUsage(facts, tuple(charts), note)
    return usage


def _facts(step: StepRecord, now: float) -> tuple[tuple[str, str], ...]:
    ended = now if step.status is Status.RUNNING else None
    seconds = sum(rank.cpu_seconds or 0.0 for rank in step.ranks)
    facts = (
        ("mean CPU per rank", cpu_of_ranks(step, ended)),
        ("CPU time", f"{seconds:,.1f} s" if any(rank.cpu_seconds is not None for rank in step.ranks) else ""),
        ("peak memory per rank", memory_of_ranks(step)),
        ("peak GPU memory per rank", gpu_memory_of_ranks(step)),
    )
    return tuple((name, value) for name, value in facts if value)


def _charts(step: StepRecord) -> list[Chart]:
    ranks = [(rank, of_rank(step.usage.get(rank.instance_rank, ()), rank.rank)) for rank in step.ranks]
    times = [samples[0][0] for _, samples in ranks if samples]
    start = min([*times, step.started] if step.started is not None else times, default=0.0)

    def of_ranks(value: Callable[[RankUsage], float | None]) -> _Values:
        return {
            f"rank {rank.rank}": [(time, found) for time, used in samples if (found := value(used)) is not None]
            for rank, samples in ranks
        }

    cpu = {f"rank {rank.rank}": _percent(cpu_rates(samples, rank.started)) for rank, samples in ranks}
    charts = (
        ("CPU, % of a core", _few(cpu)),
        ("memory, GB", _few(of_ranks(lambda used: used.memory / 1e9))),
        ("GPU, %", _few(of_ranks(lambda used: used.gpu))),
        ("GPU memory, GB", _few(of_ranks(lambda used: None if used.gpu_memory is None else used.gpu_memory / 1e9))),
        ("network, MB/s", _few(_traffic(step))),
    )
    return [
        make_chart(title, step.name, [Curve(name, "", _points(values, start)) for name, values in drawn], seconds=True)
        for title, curves in charts
        if (drawn := [(name, values) for name, values in curves.items() if len(values) > 1])
    ]


def _traffic(step: StepRecord) -> _Values:
    """Return the traffic of the instances, unless there was none. The only instance of a step has no peer."""
    curves: _Values = {}
    if step.instance_count == 1:
        return curves
    for instance, samples in sorted(step.usage.items()):
        for name, rates in zip(("received", "sent"), traffic_rates(samples, step.started), strict=True):
            curves[f"instance {instance} {name}"] = [(rate.end, rate.value / 1e6) for rate in rates]
    return curves if any(value for values in curves.values() for _, value in values) else {}


def _percent(rates: Sequence[Rate]) -> list[tuple[float, float]]:
    return [(rate.end, 100 * rate.value) for rate in rates]


def _few(curves: _Values) -> _Values:
    """Return curves with few points. If there are too many of them, return the highest, mean and lowest value."""
    times = [time for values in curves.values() for time, _ in values]
    if not times:
        return {}
    first, last = min(times), max(times)
    count = min(max(len(values) for values in curves.values()), _POINTS)
    width = (last - first) / count or 1.0
    by_name = {name: _means(values, first, width, count) for name, values in curves.items()}
    if len(curves) > SERIES:
        together: dict[int, list[float]] = {}
        for means in by_name.values():
            for place, value in means.items():
                together.setdefault(place, []).append(value)
        by_name = {
            "highest": {place: max(values) for place, values in together.items()},
            "mean": {place: round(sum(values) / len(values), 3) for place, values in together.items()},
            "lowest": {place: min(values) for place, values in together.items()},
        }
    return {
        name: [(first + (place + 1) * width, means[place]) for place in sorted(means)]
        for name, means in by_name.items()
    }


def _means(values: Sequence[tuple[float, float]], first: float, width: float, count: int) -> dict[int, float]:
    """Return the mean of the values in each of `count` periods."""
    periods: dict[int, list[float]] = {}
    for time, value in values:
        periods.setdefault(min(int((time - first) / width), count - 1), []).append(value)
    return {place: round(sum(found) / len(found), 3) for place, found in periods.items()}


def _points(values: Sequence[tuple[float, float]], start: float) -> list[Point]:
    return [Point(max(round(time - start), 0), value, time) for time, value in values]
