"""Compute throughput, efficiency, cost, and where more instances stop paying."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

from allranks_steps.trainings import Training

ALIKE = 0.15
"""Relative difference up to which batch sizes count as equal: an epoch's last batch is often smaller."""


@dataclass(frozen=True)
class Row:
    """A training's figures. Comparisons are with the training on the fewest instances.

    throughput:   samples per second over all ranks, the median over the points
    spread:       the lower and the upper quartile of the points' throughput
    step_seconds: the median
    speed_up:     the ratio of the throughputs
    efficiency:   the speed-up divided by the ratio of the instances
    gain:         the efficiency compared with the row before; None in the first
    cost:         of a million samples; None without a price
    """

    instance_count: int
    world_size: int
    samples_per_step: float
    step_seconds: float
    throughput: float
    spread: tuple[float, float]
    speed_up: float
    efficiency: float
    gain: float | None
    cost: float | None


@dataclass(frozen=True)
class Study:
    """The result of a scaling study.

    sample:         name of one sample
    kind:           strong: the batch is the same for every row; weak: it is the same for each instance; mixed: neither
    pays_up_to:     the largest number of instances up to which every row's gain is at least min_efficiency
    stops_at:       the first number of instances that does not pay; None if all do
    """

    sample: str
    kind: str
    min_efficiency: float
    price_per_hour: float | None
    pays_up_to: int
    stops_at: int | None
    rows: tuple[Row, ...]

    def row(self, instance_count: int) -> Row:
        """Return the row of a number of instances."""
        return next(row for row in self.rows if row.instance_count == instance_count)


def study(trainings: Sequence[Training], min_efficiency: float, price_per_hour: float | None) -> Study:
    """Return the figures of at least one training, in ascending order of instances."""
    paces = [[point.samples / point.seconds for point in training.points] for training in trainings]
    rates = [median(each) for each in paces]
    counts = [training.instance_count for training in trainings]
    gains = [None] + [
        (rate / rate_before) / (count / count_before)
        for (rate_before, rate), (count_before, count) in zip(pairwise(rates), pairwise(counts), strict=True)
    ]
    rows = tuple(
        Row(
            instance_count=training.instance_count,
            world_size=training.world_size,
            samples_per_step=training.samples_per_step,
            step_seconds=median(point.seconds for point in training.points),
            throughput=rate,
            spread=_spread(pace),
            speed_up=rate / rates[0],
            efficiency=(rate / rates[0]) / (training.instance_count / counts[0]),
            gain=gain,
            cost=None if price_per_hour is None else 1e6 / rate / 3600 * training.instance_count * price_per_hour,
        )
        for training, pace, rate, gain in zip(trainings, paces, rates, gains, strict=True)
    )
    stops = next((at for at, gain in enumerate(gains) if gain is not None and gain < min_efficiency), None)
    return Study(
        sample=trainings[0].sample,
        kind=kind(trainings),
        min_efficiency=min_efficiency,
        price_per_hour=price_per_hour,
        pays_up_to=counts[-1 if stops is None else stops - 1],
        stops_at=None if stops is None else counts[stops],
        rows=rows,
    )


def kind(trainings: Sequence[Training]) -> str:
    """Return strong, weak or mixed; strong for a single training."""
    batches = [training.samples_per_step for training in trainings]
    shares = [training.samples_per_step / training.instance_count for training in trainings]
    if _alike(batches):
        return "strong"
    return "weak" if _alike(shares) else "mixed"


def _alike(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= ALIKE * max(values)


def _spread(rates: Sequence[float]) -> tuple[float, float]:
    if len(rates) < 2:
        return rates[0], rates[0]
    low, _, high = quantiles(rates, n=4, method="inclusive")
    return low, high
