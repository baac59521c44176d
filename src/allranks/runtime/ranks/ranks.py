"""The ranks of a training, as one of them sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, overload

import torch
from torch import Tensor
from torch.distributed import HashStore, Store  # type: ignore[attr-defined]

from allranks.runtime.communication import collectives
from allranks.runtime.communication.collectives import RankMean
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.strategies.training import Strategy

T = TypeVar("T")


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
