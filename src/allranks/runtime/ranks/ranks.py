"""The ranks of a training, as one of them sees it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar, overload

import torch
from torch import Tensor, distributed
from torch.distributed import HashStore, Store  # type: ignore[attr-defined]

from allranks.contract import world
from allranks.contract.detect import detect
from allranks.contract.own_variables import join_seconds
from allranks.runtime import libraries, strategies
from allranks.runtime.communication import collectives
from allranks.runtime.communication.process_group import open_group
from allranks.runtime.communication.rendezvous import connect_ranks
from allranks.runtime.exit import closing
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.preflight.checking import Preflight, is_enabled
from allranks.runtime.ranks.rank_mean import RankMean
from allranks.runtime.strategies.training import Strategy

T = TypeVar("T")

TIMEOUT_SECONDS = 600.0
"""How long a rank waits for the others. torch's default is half an hour, which is expensive on a rented cluster."""


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, and the objects that it trains with. torch's default process group is initialised, also
    if there is one rank only.

    rank, world_size: number of this rank, and number of all ranks
    local_rank, local_world_size: the same within the instance
    instance_rank, instance_count: number of the instance, and number of instances
    launcher: the launcher that started this process, as the contract names it
    device:   the device of this rank
    strategy: how the model is distributed over the ranks
    metrics:  logs to MLflow and to the live view
    store:    the key-value store that connects the ranks
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
    store: Store = field(default_factory=HashStore, repr=False)

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self.any_rank(False)

    def any_rank(self, flag: bool) -> bool:
        """Return True on every rank if the flag is True on at least one. Every rank must call it."""
        return bool(self.reduce(int(flag), "max"))

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the concatenation of every rank's tensor along the first dimension, in the order of the ranks. A
        collective.

        tensor: on any device; [n, ...] with another n on each rank if need be, also 0. A scalar counts as [1].

        Every rank gets the result, on the device of its own tensor: [sum of n, ...], without gradients. So every rank
        computes the same metric from it. Raise InputError if dtypes or the other dimensions differ.

            scores = ranks.gather(model(images).softmax(dim=1))
        """
        return collectives.gather(tensor)

    @overload
    def reduce(self, value: Tensor, operation: str = "sum") -> Tensor: ...
    @overload
    def reduce(self, value: float, operation: str = "sum") -> float: ...
    def reduce(self, value: Tensor | float, operation: str = "sum") -> Tensor | float:
        """Return the sum, mean, maximum or minimum over the ranks, elementwise. A collective.

        value:     a number, or a tensor of the same shape on every rank, which does not change
        operation: "sum", "mean", "max" or "min"

        Every rank gets the result: a number for a number, and a tensor on the same device, without gradients, for a
        tensor. It has the tensor's dtype, except that sums of integers and booleans are int64, and their means float32.
        Raise InputError for another operation. To log a mean over the ranks without waiting for it, use `mean`.
        """
        return collectives.reduce(value, operation)

    def broadcast(self, value: T) -> T:
        """Return rank 0's value on every rank. A collective.

        value: any object that pickle can serialise; the values of other ranks are ignored

            files = ranks.broadcast(sorted(folder.iterdir()) if ranks.is_main else [])
        """
        return collectives.broadcast(value)

    def mean(self, value: Tensor | float) -> RankMean:
        """Return the mean of a number over all ranks, to be logged. A collective.

        value: this rank's number, or a tensor of one element, on its device

        It does not wait for the result: `float(mean)` does, and `metrics.log` reads it later.

            if step % 10 == 0:
                ranks.metrics.log({"train_loss": ranks.mean(loss)}, step=step)
        """
        return RankMean(value, self.device)


def start(strategy_name: str, timeout_seconds: float) -> Ranks:
    """Read the launch variables, prepare libraries, connect the ranks, run the preflight checks, initialise the process
    group, and open the metrics.

    Raise InputError if the launch variables contradict each other, the ranks came up on fewer instances than declared,
    the strategy is unknown or not installed, or a preflight check fails. Raise ConnectionError if the ranks do not
    connect within ALLRANKS_JOIN_SECONDS, by default timeout_seconds.
    """
    env = detect()
    has_preflight = is_enabled(env)
    if not has_preflight:  # it compares the worlds too, in its table
        world.check(env)
    strategies.check(strategy_name)
    libraries.set_variables(env)
    store = connect_ranks(env, join_seconds(os.environ, timeout_seconds)) if env.world_size > 1 else HashStore()
    preflight = Preflight(env, store) if has_preflight else None
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
        store=store,
    )


@contextmanager
def started(*, strategy: str = "ddp", timeout_seconds: float = TIMEOUT_SECONDS) -> Generator[Ranks]:
    """Context manager that yields the same Ranks as `main` passes to a training. For programs with their own main
    function."""
    ranks = start(strategy, timeout_seconds)
    status, ended = "FAILED", None
    try:
        try:
            yield ranks
        except SystemExit as error:
            if error.code:
                raise
            ended = error  # sys.exit(0) is a success, which waits for its last checkpoint
        closing.close_all()
        status = "FINISHED"
    except BaseException:
        closing.abandon_all()
        raise
    finally:
        ranks.metrics.close(status)
        distributed.destroy_process_group()
    if ended:
        raise ended
