"""Compare the collectives that ranks have called, by the recordings of torch's Flight Recorder: which rank has called
fewer than the others, where two have called different ones, and which rank is steadily slower.

A recording is the pickle or the JSON that torch dumps. With gloo, the state of a collective never changes, so that only
the counts say who waits.
"""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from allranks.history.records import RankRecord
from allranks.text import rank_list
from allranks.verdict.tracebacks import is_library

LEAST_CALLS = 100
"""Fewer collectives of a rank say nothing about its pace."""

MOST_BYTES = 1 << 28
"""Maximum size of a file that is read."""

_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "Long": "int64", "Int": "int32", "Short": "int16",
    "Char": "int8", "Byte": "uint8",
}  # fmt: skip
"""torch's names by those of c10::ScalarType, where they differ in more than their case."""

_SAME_SIZES = frozenset(
    {"all_reduce", "broadcast", "reduce", "all_reduce_coalesced", "_all_gather_base", "_reduce_scatter_base"}
)
"""Collectives that all ranks must call with the same sizes and types. NCCL's all_gather permits others."""


@dataclass(frozen=True)
class Call:
    """A collective that a rank has called.

    group:   the name of its process group
    number:  how many the rank has called in this group, with this one
    backend: such as gloo
    time:    of the call, in seconds since the epoch
    where:   the line of user code that called it; "" if it is not known
    is_done: whether it is known to have ended
    """

    group: str
    number: int
    backend: str
    name: str
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    time: float = 0.0
    where: str = ""
    is_done: bool = False

    @property
    def required(self) -> tuple[object, ...]:
        """What must be the same on all ranks: of shapes, the numbers of elements."""
        if self.name in _SAME_SIZES or (self.name, self.backend) == ("all_gather", "gloo"):
            return self.name, tuple(map(math.prod, self.shapes)), self.dtypes
        return (self.name,)

    def __str__(self) -> str:
        if not self.shapes:
            return self.name
        sizes = "x".join(map(str, self.shapes[0])) or "a scalar"
        more = f" and {len(self.shapes) - 1} more" if len(self.shapes) > 1 else ""
        return f"{self.name} of {sizes} {self.dtypes[0] if self.dtypes else ''}".rstrip() + more

    @property
    def located(self) -> str:
        """It and its line, such as ``barrier (train.py:10)``."""
        return f"{self} ({self.where})" if self.where else str(self)


@dataclass(frozen=True)
class Recording:
    """What a rank has called, the oldest first. Calls between two ranks alone are left out.

    rank:     as torch counts
    launcher: the rank of the job that has started this one, such as one that runs torchrun; None if it is itself
    """

    rank: int
    calls: tuple[Call, ...]
    launcher: int | None = None

    @property
    def job_rank(self) -> int:
        """The rank of the job whose log it writes to."""
        return self.rank if self.launcher is None else self.launcher


@dataclass(frozen=True)
class Difference:
    """Ranks whose calls differ in a place at which they must not, or of which some have called no further one.

    first:  to blame: of a rank that differs from most others
    ranks:  those that differ as it does
    call:   theirs; the last one in any process group, if they have not called what the others have
    others: the other ranks, with their call
    """

    first: Recording
    ranks: tuple[int, ...]
    call: Call
    others: tuple[tuple[tuple[int, ...], Call], ...]

    @property
    def other_calls(self) -> str:
        """What the others have called, such as ``ranks 0 and 2 called barrier (train.py:10)``."""
        return ", ".join(f"{rank_list(ranks)} called {call.located}" for ranks, call in self.others)

    @property
    def others_wait(self) -> str:
        """That the others wait, such as ``ranks 0 and 2 wait for it in barrier (train.py:10)``."""
        ranks, call = self.others[0]
        return f"{rank_list(ranks)} {'wait' if len(ranks) > 1 else 'waits'} for it in {call.located}"


def mismatch(recordings: Sequence[Recording]) -> Difference | None:
    """Return the first collective that ranks have called differently; None if there is none."""
    called: dict[tuple[str, int], dict[int, Call]] = {}
    for recording in recordings:
        for call in recording.calls:
            called.setdefault((call.group, call.number), {})[recording.rank] = call
    different = [calls for calls in called.values() if len({call.required for call in calls.values()}) > 1]
    if not different:
        return None
    groups: dict[object, list[int]] = {}
    first = min(different, key=lambda calls: min(call.time for call in calls.values()))
    for rank, call in sorted(first.items()):
        groups.setdefault(call.required, []).append(rank)
    of_rank = {recording.rank: recording for recording in recordings}
    # Of two groups of the same size, the one differs that has called something else here before, or that lacks rank 0.
    blamed, *others = sorted(
        groups.values(),
        key=lambda ranks: (len(ranks), not _is_new(first[ranks[0]], of_rank[ranks[0]]), -ranks[0]),
    )
    call, own = first[blamed[0]], of_rank[blamed[0]]
    return Difference(own, tuple(blamed), call, tuple((tuple(ranks), first[ranks[0]]) for ranks in others))


def _is_new(call: Call, recording: Recording) -> bool:
    """Return whether a rank has called other things than this at the same line before."""
    earlier = [each for each in recording.calls if each.where == call.where and each.number < call.number]
    return bool(earlier) and all(each.required != call.required for each in earlier)


def missing(recordings: Sequence[Recording]) -> Difference | None:
    """Return the last collective that some ranks of its process group have not called; None if there is none."""
    last: dict[str, dict[int, Call]] = {}
    by_number: dict[tuple[str, int], Call] = {}
    for recording in recordings:
        for call in recording.calls:
            last.setdefault(call.group, {})[recording.rank] = call
            by_number[call.group, call.number] = call
    found = []
    for calls in last.values():
        most = max(calls.values(), key=lambda call: call.number)
        fewest = min(calls.values(), key=lambda call: call.number)
        # NCCL records what has ended. A rank that itself waits in an earlier collective is not to blame.
        if fewest.number == most.number or most.is_done or (most.backend == "nccl" and not fewest.is_done):
            continue
        behind = tuple(sorted(rank for rank, call in calls.items() if call.number == fewest.number))
        waiting = tuple(sorted(rank for rank in calls if rank not in behind))
        # They may have called further ones since, without waiting for this one.
        missed = by_number.get((most.group, fewest.number + 1), most)
        own = next(recording for recording in recordings if recording.rank == behind[0])
        found.append((most.time, Difference(own, behind, own.calls[-1], ((waiting, missed),))))
    return max(found, key=lambda each: each[0])[1] if found else None


def have_all_called(call: Call, recordings: Sequence[Recording]) -> bool:
    """Return whether all ranks of its process group have called a collective. All ranks are in the default group."""
    without = 0 if call.group == "0" else None
    last = [
        max((each.number for each in those.calls if each.group == call.group), default=without) for those in recordings
    ]
    return all(number is None or number >= call.number for number in last)


def longest_gap(recordings: Sequence[Recording]) -> float | None:
    """Return the longest time in seconds between two successive calls of a rank; None if a rank has called too few."""
    times = [[call.time for call in recording.calls] for recording in recordings]
    if not times or min(map(len, times)) < LEAST_CALLS:
        return None
    return max(later - earlier for each in times for earlier, later in pairwise(each))


def last_calls(recordings: Iterable[Recording]) -> list[str]:
    """Return the last collective of the ranks, one text for those that have called the same one."""
    groups: dict[str, list[int]] = {}
    for recording in recordings:
        if recording.calls:
            groups.setdefault(recording.calls[-1].located, []).append(recording.rank)
    return [f"{rank_list(sorted(ranks))}: in {call}" for call, ranks in groups.items()]


def read(path: Path, rank: int, launcher: int | None = None, *, last: bool = False) -> Recording | None:
    """Return the recording in a file of a rank; None if it is truncated, or no recording. last: its last call only"""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        data = path.read_bytes()
        dump = json.loads(data) if data[:1] == b"{" else _Plain(BytesIO(data)).load()
        entries = [entry for entry in dump["entries"] if entry and not entry.get("is_p2p")]
        entries.sort(key=lambda entry: int(entry.get("record_id", 0)))
        return Recording(rank, tuple(map(_call, entries[-1:] if last else entries)), launcher)
    except Exception:  # a foreign file may have any type anywhere, and a pickle may raise anything
        return None


class _Plain(pickle.Unpickler):
    """Load a pickle of plain data. One that names a class or function fails, so it can execute nothing."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def _call(entry: Mapping[str, Any]) -> Call:
    backend, _, name = str(entry["profiling_name"]).rpartition(":")
    frames = ((str(frame["filename"]), int(frame["line"])) for frame in entry.get("frames") or ())
    user = next(((file, line) for file, line in frames if not is_library(file)), None)
    return Call(
        str(entry["process_group"][0]),
        int(entry["collective_seq_id"]),
        backend,
        name,
        tuple(tuple(map(int, shape)) for shape in entry["input_sizes"]),
        tuple(_DTYPES.get(name, name.lower()) for name in map(str, entry.get("input_dtypes") or ())),
        int(entry.get("time_created_ns") or 0) / 1e9,
        f"{user[0].rpartition('/')[2]}:{user[1]}" if user else "",
        entry.get("state") == "completed",
    )


LEAST_SHARE = 0.1
"""Share of the time for which the others must wait for a rank, in the whole and in nearly every part of it."""

PARTS, STEADY = 10, 8
"""The training is split into so many parts. In so many of them, the rank must be the slowest, by that share."""

_MORE_CPU = 1.1
"""A rank with so many times the CPU time of the others has more to compute."""


def straggler(recordings: Sequence[Recording], ranks: Sequence[RankRecord]) -> str:
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
