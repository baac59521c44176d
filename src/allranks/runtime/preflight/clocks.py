"""Offsets of the instances' clocks from the clock of instance 0."""

from __future__ import annotations

import time
from datetime import timedelta

from torch.distributed import Store  # type: ignore[attr-defined]

from allranks.contract.rank_env import RankEnv


def offsets(env: RankEnv, store: Store, timeout: timedelta) -> list[float]:
    """Return, on rank 0, how many seconds each instance's clock is ahead of instance 0's; [] on other ranks. Every rank
    must call it. The values are accurate to half a round trip.

    Rank 0 requests the time from one rank of each instance, one instance after another.
    """
    if env.rank == 0:
        ahead = [0.0]
        for instance in range(1, env.instance_count):
            before = time.time()
            store.set(f"clock/ask/{instance}", "")
            store.wait([f"clock/{instance}"], timeout)
            after = time.time()
            ahead.append(float(store.get(f"clock/{instance}")) - (before + after) / 2)
        return ahead
    if env.local_rank == 0:
        store.wait([f"clock/ask/{env.instance_rank}"], timeout)
        store.set(f"clock/{env.instance_rank}", repr(time.time()))
    return []
