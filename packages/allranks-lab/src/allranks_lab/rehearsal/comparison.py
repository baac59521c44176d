"""The effects of evictions on a training: its steps, samples, losses and weights, and the causes."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from allranks_lab.rehearsal.steps import Attempt, RankSteps, TrainingStep


@dataclass(frozen=True)
class Resumption:
    """A new attempt after an eviction.

    reached:  the last training step before the eviction
    resumed:  the training step after which the new attempt starts
    seconds:  the time from the eviction to the end of the next training step
    lost:     the state that the new attempt did not restore, one sentence each
    """

    reached: int
    resumed: int
    seconds: float
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Training:
    """A training with evictions, compared with the same one without.

    name:        the path of its step
    steps:       training steps without evictions
    extra_steps: training steps beyond those; negative if there were fewer
    repeated, missing: samples within an epoch that were seen more often, or less often, than without evictions; None if
                 the script does not read its samples by torch's DataLoader
    useful:      share of the time from the first training step to the last that was spent on steps that were not redone
    largest_difference: the largest difference of the loss at the same training step; None without losses
    loss_from, weights_from: the first training step at which the loss, or the weights, differ; None if none do
    weights_equal: whether the last weights are equal bit for bit; None if unknown
    before_evictions: whether they differ already before the first eviction
    curves:      the loss by training step, averaged over the ranks, by name
    """

    name: str
    steps: int
    extra_steps: int
    resumptions: tuple[Resumption, ...]
    repeated: int | None
    missing: int | None
    useful: float
    largest_difference: float | None
    loss_from: int | None
    weights_from: int | None
    weights_equal: bool | None
    before_evictions: bool
    curves: Mapping[str, Sequence[tuple[int, float]]]

    @property
    def redone(self) -> int:
        """Training steps that were made again."""
        return sum(max(0, each.reached - each.resumed) for each in self.resumptions)

    @property
    def lost(self) -> dict[str, int]:
        """The state that resumptions did not restore, with the number of resumptions, the most frequent first."""
        return dict(Counter(text for each in self.resumptions for text in each.lost).most_common())


STARTED_AGAIN = "it started again from step 0"

Steps = Mapping[int, Mapping[int, TrainingStep]]
"""By training step and rank: the recorded step."""


def compare(
    name: str, untouched: Sequence[Attempt], evicted: Sequence[Attempt], evictions: Mapping[int, float]
) -> Training:
    """Compare a training with evictions with the same one without.

    evictions: the time of the eviction of each attempt
    """
    reference, counted = _effective_steps(untouched), _effective_steps(evicted)
    resumptions = tuple(_resumptions(reference, evicted, evictions))
    curves = {"without evictions": _curve(reference), "with evictions": _curve(counted)}
    losses = [dict(points) for points in curves.values()]
    gaps = {at: abs(losses[0][at] - losses[1][at]) for at in losses[0] if at in losses[1]}
    differences = {at: gap if gap == gap else math.inf for at, gap in gaps.items()}  # NaN equals nothing
    weights_from = _first(reference, counted, "weights")
    last, last_counted = max(reference), max(counted)
    known = [rank.weights for steps in (reference[last], counted[last_counted]) for rank in steps.values()]
    sharded = set(reference[last]) != set(counted[last_counted])  # by another number of ranks
    equal = None
    if all(known) and not sharded:
        equal = last == last_counted and all(
            rank.weights == counted[last][at].weights for at, rank in reference[last].items()
        )
    first_resumed = min((each.resumed for each in resumptions), default=last)
    loss_from = min((at for at, difference in differences.items() if difference), default=None)
    repeated, missing = _samples(reference, counted)
    return Training(
        name,
        last,
        last_counted - last,
        resumptions,
        repeated,
        missing,
        _useful(evicted, counted),
        max(differences.values(), default=None),
        loss_from,
        weights_from,
        equal,
        min(weights_from or last + 1, loss_from or last + 1) <= first_resumed,
        curves,
    )


def _effective_steps(attempts: Sequence[Attempt]) -> dict[int, dict[int, TrainingStep]]:
    """Return the effective steps: a repeated step replaces the first one."""
    counted: dict[int, dict[int, TrainingStep]] = {}
    for attempt in attempts:
        for redone in [at for at in counted if at > attempt.start]:
            del counted[redone]
        for number, rank in attempt.ranks.items():
            for step in rank.steps:
                counted.setdefault(step.step, {})[number] = step
    return counted


def _resumptions(reference: Steps, attempts: Sequence[Attempt], evictions: Mapping[int, float]) -> Iterator[Resumption]:
    made: list[Attempt] = []
    used = _used_generators(reference)
    for attempt in attempts:
        if made:
            before = made[-1]
            ended = evictions.get(before.number, before.times[1])
            lost = tuple(dict.fromkeys(_lost(reference, made, attempt, used)))
            yield Resumption(before.last, attempt.start, max(0.0, attempt.times[0] - ended), lost)
        made.append(attempt)


def _lost(reference: Steps, made: Sequence[Attempt], attempt: Attempt, used: Sequence[str]) -> Iterator[str]:
    """Describe the state that a new attempt did not restore.

    used: the random number generators that the training uses
    """
    recorded = {at: rank for at, rank in attempt.ranks.items() if rank.weights and rank.steps}
    for number, rank in recorded.items():
        if rank.start == 0:
            yield f"the weights: {STARTED_AGAIN}. Save a checkpoint, and load it at the start"
            return
        if not rank.known and rank.world == made[-1].ranks.get(number, rank).world:
            yield (
                "the weights: they are those of no step so far. Save model.state_dict(), and load it before the "
                "first step"
            )
        before = _last_made(made, number, rank.start)
        if before is not None and before.optimizer != rank.optimizer:
            what = "is empty" if not rank.optimizer else "is another one"
            yield f"the optimizer: its state, such as moments, {what}. Save optimizer.state_dict()"
        restored = [
            name for name in used if before is not None and before.random_after.get(name) == rank.random.get(name)
        ]
        yield from _differing(reference, number, rank, used, restored)


def _differing(
    reference: Steps, number: int, rank: RankSteps, used: Sequence[str], restored: Sequence[str]
) -> Iterator[str]:
    """Describe the differences of a rank's steps from those without evictions, besides its weights and optimizer.

    restored: the random number generators whose state is restored before the first batch of data is read
    """
    pairs = [
        (step, reference[step.step][number])
        for step in rank.steps
        if number in reference.get(step.step, {}) and len(reference[step.step]) == int(rank.world)
    ]
    if any(step.rates != other.rates for step, other in pairs):
        yield "the learning rate: it is another one. Save the scheduler's state_dict()"
    if any(step.samples != other.samples for step, other in pairs):
        yield "the order of the data: other samples follow. Save the epoch, the position in it and the seed"
    if pairs and rank.start == pairs[0][0].step - 1:
        step, other = pairs[0]
        for name in used:
            if step.random.get(name) != other.random.get(name):
                how = "a new data loader has drawn from it. Give the loader a generator of its own"
                yield f"the random state of {name}: {how if name in restored else _RANDOM[name]}"


_RANDOM = {
    "Python": "save random.getstate()",
    "numpy": "save numpy.random.get_state()",
    "torch": "save torch.get_rng_state()",
    "CUDA": "save torch.cuda.get_rng_state()",
}
"""The state to save for each random number generator."""


def _used_generators(reference: Steps) -> list[str]:
    """Return the random number generators whose state changes during the training."""
    states: dict[str, set[str]] = {}
    for at in sorted(reference)[:_LOOKED_AT]:
        for name, state in reference[at][min(reference[at])].random.items():
            states.setdefault(name, set()).add(state)
    return [name for name, found in states.items() if len(found) > 1]


_LOOKED_AT = 10_000


def _last_made(made: Sequence[Attempt], number: int, at: int) -> TrainingStep | None:
    """Return the last version of a rank's training step."""
    for attempt in reversed(made):
        for step in reversed(attempt.ranks[number].steps if number in attempt.ranks else ()):
            if step.step == at:
                return step
    return None


def _curve(steps: Steps) -> list[tuple[int, float]]:
    points = []
    for at in sorted(steps):
        values = [rank.loss for rank in steps[at].values() if rank.loss is not None]
        if values:
            points.append((at, sum(values) / len(values)))
    return points


def _first(reference: Steps, counted: Steps, name: str) -> int | None:
    for at in sorted({*reference} & {*counted}):
        ranks = {*reference[at]} & {*counted[at]}
        if any(getattr(reference[at][rank], name) != getattr(counted[at][rank], name) for rank in ranks):
            return at
    return None


def _samples(reference: Steps, counted: Steps) -> tuple[int | None, int | None]:
    """Return how many samples of an epoch were seen too often, and too seldom; None if unknown."""
    if not any(rank.samples for steps in reference.values() for rank in steps.values()):
        return None, None
    epochs = {at: min(rank.epoch for rank in ranks.values()) for at, ranks in reference.items()}
    seen = [Counter[tuple[int, object]](), Counter[tuple[int, object]]()]
    for found, steps in zip(seen, (reference, counted), strict=True):
        for at, ranks in steps.items():
            if at in epochs:
                found.update((epochs[at], sample) for rank in ranks.values() for sample in rank.samples)
    return (seen[1] - seen[0]).total(), (seen[0] - seen[1]).total()


def _useful(attempts: Sequence[Attempt], counted: Steps) -> float:
    steps = [
        later.time - earlier.time
        for attempt in attempts
        for rank in list(attempt.ranks.values())[:1]
        for earlier, later in zip(rank.steps, rank.steps[1:], strict=False)
    ]
    total = attempts[-1].times[1] - attempts[0].times[0]
    return min(1.0, median(steps) * (len(counted) - 1) / total) if steps and total > 0 else 1.0
