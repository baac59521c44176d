"""Ranks that are connected by sockets. What they do is the first argument."""

import os
import signal
import sys
import time

import numpy as np

from allranks.errors import InputError, Problem
from allranks.runtime import sockets
from allranks.runtime.clean_exit import Evicted


def collectives(ranks: sockets.Ranks) -> None:
    assert ranks.all_gather({"rank": ranks.rank}) == [{"rank": rank} for rank in range(ranks.world_size)]
    assert ranks.broadcast([ranks.rank, "text"]) == [0, "text"]
    assert ranks.any_rank(ranks.rank == ranks.world_size - 1)
    assert not ranks.any_rank(False)
    arrays = ranks.gather_arrays(np.full((ranks.rank, 2), ranks.rank, dtype=np.float32))
    if ranks.is_main:
        assert arrays is not None
        assert [array.shape for array in arrays] == [(rank, 2) for rank in range(ranks.world_size)]
        assert all((array == rank).all() for rank, array in enumerate(arrays))
    hardware = ranks.measured_on()
    assert (hardware["world_size"], len(hardware["machines"])) == (ranks.world_size, 1)
    ranks.metrics.log({"rank": ranks.rank}, step=1)
    print(f"rank {ranks.rank} of {ranks.world_size}, torch {'torch' in sys.modules}")


def fails(ranks: sockets.Ranks) -> None:
    if ranks.rank == 1:
        raise InputError(Problem("data", "no rows"))
    time.sleep(300)


def dies(ranks: sockets.Ranks) -> None:
    if ranks.rank == ranks.world_size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(300)


def late(ranks: sockets.Ranks) -> None:
    """The ranks finish one after the other."""
    time.sleep(0.7 * (ranks.world_size - ranks.rank - 1))


def evicted(ranks: sockets.Ranks) -> None:
    time.sleep(0.7 * ranks.rank)
    raise Evicted


if __name__ == "__main__":
    sockets.main(globals()[sys.argv[1]], timeout_seconds=float(sys.argv[2]) if len(sys.argv) > 2 else 60)
