"""A rank's place in its training, and what it trains with."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed
from torch.distributed import HashStore  # type: ignore[attr-defined]

from allranks.contract.detect import detect
from allranks.runtime import libraries, strategies
from allranks.runtime.meeting import meet
from allranks.runtime.metrics import Metrics
from allranks.runtime.preflight.checking import Preflight, wanted
from allranks.runtime.process_group import open_group
from allranks.runtime.strategies import Strategy

TIMEOUT_SECONDS = 600.0
"""How long a rank waits for the others. torch waits for half an hour, which on a rented cluster is a hang."""


@dataclass(frozen=True)
class Ranks:
    """This process among those of the training. torch's default process group is up, also where it is the only one.

    rank, world_size:             its number among all, and how many there are
    local_rank, local_world_size: the same within its instance
    instance_rank, instance_count: the same for the instance
    launcher: what started it, as the contract names it
    device:   where its tensors go
    strategy: how its model is spread over the ranks
    metrics:  where its figures go
    """

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    instance_rank: int
    instance_count: int
    launcher: str
    device: torch.device
    strategy: Strategy
    metrics: Metrics

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, the one that writes what is written once."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.any(False)

    def any(self, flag: bool) -> bool:
        """True on every rank where it is True on one. Every rank has to call it."""
        flags = torch.tensor([flag], dtype=torch.uint8)
        distributed.all_reduce(flags, distributed.ReduceOp.MAX)
        return bool(flags.item())


def start(strategy_name: str, timeout_seconds: float) -> Ranks:
    """Read the launch, prepare the libraries, meet the other ranks, check what they stand on, bring the process group
    up, and open the metrics.

    Raise InputError for a launch that contradicts itself, a strategy that is not known or not installed, or a check
    that failed; ConnectionError where the ranks did not meet.
    """
    env = detect()
    strategies.check(strategy_name)
    libraries.place(env)
    store = meet(env, timeout_seconds) if env.world_size > 1 else HashStore()
    preflight = Preflight(env, store) if wanted(env) else None
    if preflight:
        preflight.before_the_group()
    device = open_group(env, store, timeout_seconds)
    if preflight:
        preflight.in_the_group(device)
    return Ranks(
        rank=env.rank,
        local_rank=env.local_rank,
        world_size=env.world_size,
        local_world_size=env.local_world_size,
        instance_rank=env.instance_rank,
        instance_count=env.instance_count,
        launcher=env.launcher,
        device=device,
        strategy=strategies.strategy(strategy_name, device),
        metrics=Metrics(is_main=env.rank == 0),
    )


@contextmanager
def started(*, strategy: str = "ddp", timeout_seconds: float = TIMEOUT_SECONDS) -> Generator[Ranks]:
    """What `main` gives to a training, as a block: for a recorder, or a program with a main of its own."""
    ranks = start(strategy, timeout_seconds)
    try:
        yield ranks
    except BaseException:
        ranks.metrics.close("FAILED")
        raise
    else:
        ranks.metrics.close("FINISHED")
    finally:
        distributed.destroy_process_group()
