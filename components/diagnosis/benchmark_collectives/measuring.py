"""Check and time every collective at every size."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from collectives import COLLECTIVES, Collective, Place, element_count

from allranks import runtime


@dataclass(frozen=True)
class Row:
    """Figures of a collective at one size.

    size:           bytes of the whole array, with the same whole number of elements for each rank: an all-gather's
                    output, a reduce-scatter's input
    seconds:        per call: the loop's time over its calls, on the slowest rank, since a training waits for it
                    (nccl-tests -a 3)
    mean_seconds:   per call, the mean over the ranks, which nccl-tests reports by default (-a 1)
    algorithm_gb_s: size over seconds in GB/s, of 10^9 bytes
    bus_gb_s:       that times the factor of the collective
    wrong:          wrong elements of the result, over all ranks
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
    """A collective that could not be measured at a size, and why."""

    collective: str
    size: int
    reason: str


def sizes(smallest: int, largest: int, factor: int) -> list[int]:
    """Return the sizes in bytes from the smallest to the largest, each `factor` times the one before."""
    result = [smallest]
    while result[-1] * factor <= largest:
        result.append(result[-1] * factor)
    return result


def measure(name: str, size: int, place: Place, ranks: runtime.Ranks, warm_up: int, iterations: int) -> Row | Skipped:
    """Measure a collective at one size. Every rank must call it."""
    count = element_count(size, place.dtype, ranks.world_size)
    size = count * place.dtype.itemsize
    created: list[Collective] = []
    # The ranks exchange failures before the next collective, in which they would wait for the failed rank.
    failure = _try(lambda: created.append(COLLECTIVES[name].make(count, place)), ranks)
    if not failure:
        created[0].prepare()
        failure = _try(created[0].call, ranks)
    if failure:
        return Skipped(name, size, failure)
    wrong = created[0].wrong()
    created[0].clear()
    local_seconds = seconds(created[0].call, ranks, warm_up=warm_up, iterations=iterations)
    longest = ranks.reduce(local_seconds, "max")
    algorithm_gb_s = size / longest / 1e9
    return Row(
        collective=name,
        size=size,
        seconds=longest,
        mean_seconds=ranks.reduce(local_seconds, "mean"),
        algorithm_gb_s=algorithm_gb_s,
        bus_gb_s=algorithm_gb_s * COLLECTIVES[name].factor(ranks.world_size),
        wrong=int(ranks.reduce(wrong, "sum")),
    )


def seconds(call: Callable[[], object], ranks: runtime.Ranks, *, warm_up: int, iterations: int) -> float:
    """Return the seconds per call on this rank, timed as in nccl-tests: from a barrier until the last call is done."""
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
    """Run an action. Return the reason if it failed on any rank, "" if it succeeded on all.

    The loss of a peer is not hidden: exchanging the reasons then fails too.
    """
    reason = ""
    try:
        action()
        _finish(ranks)
    except (RuntimeError, ValueError, NotImplementedError) as error:  # no memory, unsupported backend or dtype
        reason = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    if not ranks.any_rank(bool(reason)):
        return ""
    reasons: list[str] = [""] * ranks.world_size
    dist.all_gather_object(reasons, reason)
    return next(reason for reason in reasons if reason)


def _finish(ranks: runtime.Ranks) -> None:
    if ranks.device.type == "cuda":
        torch.cuda.synchronize(ranks.device)
