"""From sizes to figures: every collective at every size, checked and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from bandwidths import algorithm_gb_s, bus_gb_s
from collectives import COLLECTIVES, Collective, Place, element_count

from allranks import runtime


@dataclass(frozen=True)
class Row:
    """A collective at a size.

    size:         bytes of the whole array, a whole number of elements for each rank
    seconds:      of a call: the loop's time over its calls, of the rank that took the longest, since a training waits
                  for that one (nccl-tests -a 3)
    mean_seconds: the same, the mean over the ranks, which nccl-tests tells by default (-a 1)
    wrong:        elements of the result that are wrong, over all ranks
    """

    collective: str
    size: int
    seconds: float
    mean_seconds: float
    algorithm_gb_s: float
    bus_gb_s: float
    wrong: int


@dataclass(frozen=True)
class Skipped:
    """What could not be measured, and why."""

    collective: str
    size: int
    reason: str


def sizes(smallest: int, largest: int, factor: int) -> list[int]:
    """Bytes from the smallest to the largest, each so many times as large as the one before."""
    found = [smallest]
    while found[-1] * factor <= largest:
        found.append(found[-1] * factor)
    return found


def measure(
    names: Sequence[str], size: int, dtype: torch.dtype, ranks: runtime.Ranks, *, warm_up: int, iterations: int
) -> Iterator[Row | Skipped]:
    """Each collective at one size. A collective itself."""
    place = Place(ranks.rank, ranks.world_size, ranks.device, dtype)
    count = element_count(size, dtype, ranks.world_size)
    for name in names:
        yield _measure(name, count, place, ranks, warm_up, iterations)


def _measure(name: str, count: int, place: Place, ranks: runtime.Ranks, warm_up: int, iterations: int) -> Row | Skipped:
    size = count * place.dtype.itemsize
    made: list[Collective] = []
    # Every rank learns of a rank's failure before the next collective: it would wait there for one that never comes.
    failed = _try(lambda: made.append(COLLECTIVES[name](count, place)), ranks)
    if not failed:
        made[0].prepare()
        failed = _try(made[0].call, ranks)
    if failed:
        return Skipped(name, size, failed)
    wrong = made[0].wrong()
    made[0].clear()
    own = seconds(made[0].call, ranks, warm_up=warm_up, iterations=iterations)
    longest, sums = torch.tensor(own, dtype=torch.float64), torch.tensor([own, wrong], dtype=torch.float64)
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    dist.all_reduce(sums)
    return Row(
        collective=name,
        size=size,
        seconds=longest.item(),
        mean_seconds=sums[0].item() / ranks.world_size,
        algorithm_gb_s=algorithm_gb_s(size, longest.item()),
        bus_gb_s=bus_gb_s(name, size, longest.item(), ranks.world_size),
        wrong=int(sums[1].item()),
    )


def seconds(call: Callable[[], object], ranks: runtime.Ranks, *, warm_up: int, iterations: int) -> float:
    """Of one of so many calls on this rank, as nccl-tests times: from a barrier until the last of them is done."""
    for _ in range(warm_up):
        call()
    _finish(ranks)
    ranks.barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        call()
    _finish(ranks)
    return (time.perf_counter() - started) / iterations


def _try(action: Callable[[], object], ranks: runtime.Ranks) -> str:
    """Why it failed on this or another rank, nothing where it did not.

    A lost peer is not hidden by it: that the ranks then tell each other fails too.
    """
    reason = ""
    try:
        action()
        _finish(ranks)
    except (RuntimeError, ValueError, NotImplementedError) as error:  # no memory, not in this backend, not this type
        reason = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    if not ranks.any_rank(bool(reason)):
        return ""
    reasons: list[str] = [""] * ranks.world_size
    dist.all_gather_object(reasons, reason)
    return next(reason for reason in reasons if reason)


def _finish(ranks: runtime.Ranks) -> None:
    if ranks.device.type == "cuda":
        torch.cuda.synchronize(ranks.device)
