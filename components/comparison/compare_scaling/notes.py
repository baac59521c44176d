"""Notes on what limits the validity of the figures."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from scaling import Study

from allranks_steps.trainings import Training, hardware

UNSTEADY = 1.5
"""Maximum ratio of the upper to the lower quartile of a steady throughput."""

ABOVE = 1.1
"""Efficiency above which more instances cannot be the only reason."""


def notes(trainings: Sequence[Training], study: Study) -> Iterator[str]:
    """Yield one or two sentences for each limitation of the figures, the most serious first."""
    yield from _shared_machines(trainings)
    yield from _at_once(trainings)
    unsteady = [row.instance_count for row in study.rows if row.spread[1] > UNSTEADY * row.spread[0]]
    if unsteady:
        yield (
            f"The pace on {listed(unsteady)} {'instance' if unsteady == [1] else 'instances'} was not steady: other "
            f"work ran beside it, or the steps were too few. Measure again, for longer."
        )
    above = [row.instance_count for row in study.rows if row.efficiency > ABOVE]
    if above:
        yield (
            f"On {listed(above)} instances the training scales better than perfectly: something else slowed down "
            f"the one on {study.rows[0].instance_count}."
        )
    if study.kind == "mixed":
        yield (
            "The batch is neither the same for all trainings nor the same for each instance: the size of the batch "
            "affects the figures."
        )
    devices = sorted({training.device for training in trainings})
    if len(devices) > 1:
        yield f"The trainings ran on different devices ({', '.join(devices)}): they cannot be compared."
    if any(not training.machines for training in trainings):
        yield "Not every history says which machines it was measured on: whether instances shared one is not known."


def _shared_machines(trainings: Sequence[Training]) -> Iterator[str]:
    groups: dict[str, list[int]] = {}
    for training in trainings:
        if 0 < len(training.machines) < training.instance_count:
            groups.setdefault(hardware(training.machines, training.device), []).append(training.instance_count)
    for shared, counts in groups.items():
        yield (
            f"The {listed(counts)} instances shared {shared}. The figures show how the ranks "
            f"divide this hardware, and the cost of their communication. Separate machines would scale better."
        )


def _at_once(trainings: Sequence[Training]) -> Iterator[str]:
    """Yield a note for each pair of trainings that ran at the same time on the same machine."""
    for first, second in combinations(trainings, 2):
        if first.time is None or second.time is None:
            continue
        same = {machine.name for machine in first.machines} & {machine.name for machine in second.machines}
        if same and first.time[0] < second.time[1] and second.time[0] < first.time[1]:
            yield (
                f"The trainings on {first.instance_count} and on {second.instance_count} instances ran at the same "
                f"time on one machine and slowed each other down. allranks run --slots 1 runs them one after the other."
            )


def listed(counts: Sequence[int]) -> str:
    """Format the counts as in `1, 2 and 4`."""
    texts = [f"{count:,}" for count in counts]
    return " and ".join([", ".join(texts[:-1])] * (len(texts) > 1) + texts[-1:])
