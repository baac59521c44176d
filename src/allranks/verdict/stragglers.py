"""Find a rank that is steadily slower than the others, by the times at which the ranks call the same collectives.

In each collective, the others wait for the last rank. The times are those of torch's Flight Recorder, or of the runtime
for Horovod and sockets, of the last 2,000 collectives; all ranks share the clock of this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from allranks.history.records import RankRecord
from allranks.verdict.collectives import LEAST_CALLS, Call, Recording

LEAST_SHARE = 0.1
"""Share of the time for which the others must wait for a rank, in the whole and in nearly every part of it."""

PARTS, STEADY = 10, 8
"""The training is split into so many parts. In so many of them, the rank must be the slowest, by that share."""

_MORE_CPU = 1.1
"""A rank with so many times the CPU time of the others has more to compute."""


def find(recordings: Sequence[Recording], ranks: Sequence[RankRecord]) -> str:
    """Return a sentence about the rank that is steadily slower than the others, with what its CPU time says about the
    reason; "" if there is none."""
    arrivals = _arrivals(recordings)
    if len(arrivals) < LEAST_CALLS:
        return ""
    # The first calls are those of the set-up and of a warm-up.
    arrivals = arrivals[len(arrivals) // PARTS :]
    size = len(arrivals) // PARTS
    parts = [_waits(arrivals[place * size : (place + 1) * size + 1]) for place in range(PARTS)]
    slowest = Counter(max(waits, key=lambda rank: waits[rank]) for waits in parts)
    rank, _ = slowest.most_common(1)[0]
    share = _waits(arrivals)[rank]
    steady = sum(max(waits.values()) == waits[rank] >= LEAST_SHARE for waits in parts)
    if share < LEAST_SHARE or steady < STEADY:
        return ""
    recording = next(recording for recording in recordings if recording.rank == rank)
    own = next(rank for rank in ranks if rank.rank == recording.job_rank)
    text = f"rank {rank} on instance {own.instance_rank} is steadily slower: the others wait for it"
    text = f"{text} {share:.0%} of the time"
    others = [rank.cpu_seconds for rank in ranks if rank is not own and rank.cpu_seconds]
    if recording.launcher is not None or not own.cpu_seconds or not others:
        return text  # the CPU time of a launcher is that of all its workers
    cpu = f"{own.cpu_seconds:.1f} s of CPU time, the others {median(others):.1f} s"
    if own.cpu_seconds >= _MORE_CPU * median(others):
        return f"{text}; it computes more ({cpu}): compare its data with theirs"
    return f"{text}; it computes no more than they ({cpu}): it waits for data, the network, or a core"


def _arrivals(recordings: Iterable[Recording]) -> list[dict[int, float]]:
    """Return for each collective of the largest process group when each rank has called it, in their order."""
    groups: dict[str, dict[int, dict[int, Call]]] = {}
    for recording in recordings:
        for call in recording.calls:
            if call.backend != "nccl":  # which is called long before the GPU begins it
                groups.setdefault(call.group, {}).setdefault(call.number, {})[recording.rank] = call
    largest = max(groups.values(), key=lambda calls: sum(map(len, calls.values())), default={})
    ranks = max(map(len, largest.values()), default=0)
    return [
        {rank: call.time for rank, call in sorted(calls.items())}
        for _, calls in sorted(largest.items())
        if len(calls) == ranks > 1
    ]


def _waits(arrivals: Sequence[dict[int, float]]) -> dict[int, float]:
    """Return for each rank the share of the time in which it is the only one that has not called a collective.

    A rank may call the next collective before the previous one has ended, so that the same time counts once.
    """
    waits = dict.fromkeys(arrivals[0], 0.0)
    until = min(arrivals[0].values())
    for times in arrivals:
        (_, before), (last, end) = sorted(times.items(), key=lambda item: item[1])[-2:]
        waits[last] += max(0.0, end - max(before, until))
        until = max(until, end)
    total = until - min(arrivals[0].values())
    return {rank: wait / total for rank, wait in waits.items()} if total > 0 else waits
