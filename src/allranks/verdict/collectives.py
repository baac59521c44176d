"""Compare the collectives that ranks have called, by the recordings of torch's Flight Recorder: which rank has called
fewer than the others, where two have called different ones, and which rank is steadily slower.

A recording is the pickle or the JSON that torch dumps. With gloo, the state of a collective never changes, so that only
the counts say who waits.
"""

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

    group:   name of its process group
    number:  sequence number within the group, from 1
    backend: such as gloo
    time:    of the call, in seconds since the epoch
    where:   line of user code that called it; "" if unknown
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
        """The properties that must be equal on all ranks. Shapes are compared by their number of elements."""
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
        """The call and its line, such as ``barrier (train.py:10)``."""
        return f"{self} ({self.where})" if self.where else str(self)


@dataclass(frozen=True)
class Recording:
    """The collectives that a rank has called, the oldest first, without point-to-point calls.

    rank:     as torch counts
    launcher: rank of the job that started this process, such as one that runs torchrun; None for a rank of the job
    """

    rank: int
    calls: tuple[Call, ...]
    launcher: int | None = None

    @property
    def job_rank(self) -> int:
        """The rank of the job whose log contains its output."""
        return self.rank if self.launcher is None else self.launcher


@dataclass(frozen=True)
class Difference:
    """Ranks that have called different collectives at the same position, or some of which have called fewer.

    first:  recording of the first rank to blame
    ranks:  all ranks to blame
    call:   their call at this position; their last call in any process group if they have called fewer
    others: the other ranks, with their calls
    """

    first: Recording
    ranks: tuple[int, ...]
    call: Call
    others: tuple[tuple[tuple[int, ...], Call], ...]

    @property
    def other_calls(self) -> str:
        """The calls of the others, such as ``ranks 0 and 2 called barrier (train.py:10)``."""
        return ", ".join(f"{rank_list(ranks)} called {call.located}" for ranks, call in self.others)

    @property
    def others_wait(self) -> str:
        """The wait of the others, such as ``ranks 0 and 2 wait for it in barrier (train.py:10)``."""
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
    # Of two groups of equal size, blame the one that has called something else here before, or that lacks rank 0.
    blamed, *others = sorted(
        groups.values(),
        key=lambda ranks: (len(ranks), not _is_new(first[ranks[0]], of_rank[ranks[0]]), -ranks[0]),
    )
    call, own = first[blamed[0]], of_rank[blamed[0]]
    return Difference(own, tuple(blamed), call, tuple((tuple(ranks), first[ranks[0]]) for ranks in others))


def _is_new(call: Call, recording: Recording) -> bool:
    """Return whether a rank has only called other collectives at the same line before."""
    earlier = [each for each in recording.calls if each.where == call.where and each.number < call.number]
    return bool(earlier) and all(each.required != call.required for each in earlier)


def missing(recordings: Sequence[Recording]) -> Difference | None:
    """Return the latest collective that some ranks of its process group have not called; None if there is none."""
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
        # The others may have called more since, without waiting for this one.
        missed = by_number.get((most.group, fewest.number + 1), most)
        own = next(recording for recording in recordings if recording.rank == behind[0])
        found.append((most.time, Difference(own, behind, own.calls[-1], ((waiting, missed),))))
    return max(found, key=lambda each: each[0])[1] if found else None


def have_all_called(call: Call, recordings: Sequence[Recording]) -> bool:
    """Return whether all ranks of the process group have called a collective. All ranks are in the default group."""
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
    """Return a text for each last collective, with the ranks that called it."""
    groups: dict[str, list[int]] = {}
    for recording in recordings:
        if recording.calls:
            groups.setdefault(recording.calls[-1].located, []).append(recording.rank)
    return [f"{rank_list(sorted(ranks))}: in {call}" for call, ranks in groups.items()]


def read(path: Path, rank: int, launcher: int | None = None, *, last: bool = False) -> Recording | None:
    """Return the recording in a file of a rank; None if the file is truncated or not a recording.

    last: whether to read only the last call
    """
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
    """Load a pickle of plain data. Refuse classes and functions, so that a pickle cannot execute code."""

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
"""Minimum share of the time for which the others wait for a straggler, overall and in nearly every part."""

PARTS, STEADY = 10, 8
"""Number of parts of the training, and the number of parts in which a straggler must be the slowest by that share."""

_MORE_CPU = 1.1
"""Ratio of CPU times above which a rank has more to compute than the others."""


def straggler(recordings: Sequence[Recording], ranks: Sequence[RankRecord]) -> str:
    """Return a sentence about the rank that is steadily slower than the others, with the likely reason; "" if none is.

    In each collective, the others wait for the last rank. The times are those of torch's Flight Recorder, or of the
    runtime for Horovod and sockets, of the last 2,000 collectives; all ranks share the clock of this machine.
    """
    arrivals = _arrivals(recordings)
    if len(arrivals) < LEAST_CALLS:
        return ""
    # Skip the set-up and the warm-up.
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
    """Return the time at which each rank called each collective of the largest process group, in order."""
    groups: dict[str, dict[int, dict[int, Call]]] = {}
    for recording in recordings:
        for call in recording.calls:
            if call.backend != "nccl":  # its calls return long before the GPU begins
                groups.setdefault(call.group, {}).setdefault(call.number, {})[recording.rank] = call
    largest = max(groups.values(), key=lambda calls: sum(map(len, calls.values())), default={})
    ranks = max(map(len, largest.values()), default=0)
    return [
        {rank: call.time for rank, call in sorted(calls.items())}
        for _, calls in sorted(largest.items())
        if len(calls) == ranks > 1
    ]


def _waits(arrivals: Sequence[dict[int, float]]) -> dict[int, float]:
    """Return the share of the time in which each rank is the only one that has not called a collective.

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
