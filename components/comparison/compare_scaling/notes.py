"""Notes on what limits the validity of the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from scaling import Study

from allranks_steps.trainings import Training

UNSTEADY = 1.5
"""Maximum ratio of the upper to the lower quartile of a steady throughput."""

ABOVE = 1.1
"""Efficiency above which more instances cannot be the only reason."""


def notes(trainings: Sequence[Training], study: Study) -> list[str]:
    """Return one or two sentences for each limitation of the figures, the most serious first."""
    sentences = [*_shared(trainings), *_at_once(trainings), *_unsteady(study), *_above(study), *_mixed(study.kind)]
    return [*sentences, *_devices(trainings), *_unknown(trainings)]


def _shared(trainings: Sequence[Training]) -> Iterator[str]:
    """Note instances that share machines."""
    shared = [training for training in trainings if 0 < len(training.machines) < training.instance_count]
    groups: dict[str, list[int]] = {}
    for training in shared:
        groups.setdefault(_what(training), []).append(training.instance_count)
    for what, counts in groups.items():
        yield (
            f"The {listed(counts)} instances were no machines of their own: they shared {what}. The figures say how "
            f"that divides among the ranks, and what talking to each other costs them; as many machines would do "
            f"better."
        )


def _what(training: Training) -> str:
    machines = training.machines
    cores, gpus = sum(machine.cores for machine in machines), sum(machine.gpus for machine in machines)
    what = f"{cores} core{'s' * (cores != 1)}"
    if training.device == "cuda":
        what = f"{gpus} GPU{'s' * (gpus != 1)} and {what}"
    return f"{what} of {'one machine' if len(machines) == 1 else f'{len(machines)} machines'}"


def _at_once(trainings: Sequence[Training]) -> Iterator[str]:
    """Note trainings that ran at the same time on the same machine."""
    for first, second in combinations(trainings, 2):
        if first.time is None or second.time is None:
            continue
        same = {machine.name for machine in first.machines} & {machine.name for machine in second.machines}
        if same and first.time[0] < second.time[1] and second.time[0] < first.time[1]:
            yield (
                f"The trainings on {first.instance_count} and on {second.instance_count} instances ran at the same "
                f"time on one machine and slowed each other down. allranks run --slots 1 runs them one after the other."
            )


def _unsteady(study: Study) -> Iterator[str]:
    """Note an unsteady throughput."""
    counts = [row.instance_count for row in study.rows if row.spread[1] > UNSTEADY * row.spread[0]]
    if counts:
        yield (
            f"The pace on {listed(counts)} {'instance' if counts == [1] else 'instances'} was not steady: other work "
            f"ran beside it, or the steps were too few. Measure again, for longer."
        )


def _above(study: Study) -> Iterator[str]:
    """Note a higher efficiency than more instances can explain."""
    counts = [row.instance_count for row in study.rows if row.efficiency > ABOVE]
    if counts:
        yield (
            f"On {listed(counts)} instances the training is faster than so many instances can make it: the one on "
            f"{study.rows[0].instance_count} was held up by something else."
        )


def _mixed(kind: str) -> Iterator[str]:
    if kind == "mixed":
        yield (
            "The batch is neither the same for all trainings nor the same for each instance: part of what the figures "
            "show is the size of the batch."
        )


def _devices(trainings: Sequence[Training]) -> Iterator[str]:
    devices = sorted({training.device for training in trainings})
    if len(devices) > 1:
        yield f"The trainings ran on different devices ({', '.join(devices)}): they cannot be compared."


def _unknown(trainings: Sequence[Training]) -> Iterator[str]:
    if any(not training.machines for training in trainings):
        yield "Not every history says which machines it was measured on: whether instances shared one is not known."


def listed(counts: Sequence[int]) -> str:
    """Format the counts as in `1, 2 and 4`."""
    texts = [f"{count:,}" for count in counts]
    return " and ".join([", ".join(texts[:-1])] * (len(texts) > 1) + texts[-1:])
