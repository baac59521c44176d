"""How far the instances' clocks are from the first one's."""

from __future__ import annotations

import time
from datetime import timedelta

from torch.distributed import Store  # type: ignore[attr-defined]

from allranks.contract.rank_env import RankEnv


def offsets(env: RankEnv, store: Store, timeout: timedelta) -> list[float]:
    """On rank 0: for each instance the seconds that its clock is ahead of instance 0's, exact to half of an answer's
    time. On the others an empty list. Every rank has to call it.

    One rank of each instance answers rank 0's question with its time, one instance after the other.
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
