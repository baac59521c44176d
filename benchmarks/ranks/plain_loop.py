"""A rank of benchmarks/collectives.py: the component's measurement and a plain loop, in turn, in the same process.

    torchrun ... plain_loop.py '{"all_reduce": [65536]}' ROUNDS CALLS

Rank 0 prints a line of JSON for each collective and size. It has the rounds, each with the seconds of a call on the
slowest rank, measured by the component and by the plain loop.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
from measuring import measure
from torch import distributed

from allranks import runtime

WARM_UP = 2


def main(ranks: runtime.Ranks) -> None:
    rounds, calls = map(int, sys.argv[2:])
    for name, sizes in json.loads(sys.argv[1]).items():
        for size in sizes:
            # The first round does not count.
            times = [in_turn(name, size, number, calls, ranks) for number in range(rounds + 1)][1:]
            if ranks.is_main:
                print(json.dumps({"collective": name, "size": size, "rounds": times}), flush=True)


def in_turn(name: str, size: int, number: int, calls: int, ranks: runtime.Ranks) -> tuple[float, float]:
    """Return the seconds measured by the component and by the plain loop. Their order alternates between rounds."""
    if number % 2:
        return ours(name, size, calls, ranks), plain(name, size, calls)
    plain_seconds = plain(name, size, calls)
    return ours(name, size, calls, ranks), plain_seconds


def ours(name: str, size: int, calls: int, ranks: runtime.Ranks) -> float:
    """Return the seconds of a call, measured by the component."""
    (row,) = measure([name], size, torch.float32, ranks, warm_up=WARM_UP, iterations=calls)
    return row.seconds


def plain(name: str, size: int, calls: int) -> float:
    """Return the seconds of a call, measured by a plain loop."""
    # Initialised, like real data: memory that was never written maps to a single page, which is read faster.
    tensor = torch.ones(size // 4)
    part = torch.ones(len(tensor) // distributed.get_world_size())
    collectives: dict[str, Callable[[], object]] = {
        "all_reduce": lambda: distributed.all_reduce(tensor),
        "all_gather": lambda: distributed.all_gather_single(tensor, part),
        "reduce_scatter": lambda: distributed.reduce_scatter_single(part, tensor),
        "broadcast": lambda: distributed.broadcast(tensor, src=0),
    }
    call = collectives[name]
    for _ in range(WARM_UP):
        call()
    distributed.barrier()
    started = time.perf_counter()
    for _ in range(calls):
        call()
    longest = torch.tensor((time.perf_counter() - started) / calls, dtype=torch.float64)
    distributed.all_reduce(longest, distributed.ReduceOp.MAX)
    return longest.item()


if __name__ == "__main__":
    runtime.main(main)
