"""The collectives that are measured: each rank's input, the call, and the expected result on every rank."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

PERIOD = 97
"""Elements after which the values of an array repeat. Every value is exact in every dtype."""


@dataclass(frozen=True)
class Place:
    """This rank, the number of ranks, and the device and dtype of the tensors."""

    rank: int
    world_size: int
    device: torch.device
    dtype: torch.dtype


@dataclass(frozen=True)
class Collective:
    """A collective with its own buffers.

    call:    performs the operation once; on a GPU it is only enqueued
    given:   this rank's input buffer, and a function that returns its values
    result:  this rank's output, in the same form
    """

    call: Callable[[], object]
    given: tuple[Tensor, Callable[[], Tensor]]
    result: tuple[Tensor, Callable[[], Tensor]]

    def prepare(self) -> None:
        """Fill the input and zero the output."""
        self.clear()
        buffer, values = self.given
        buffer.copy_(values())

    def wrong(self) -> int:
        """Return the number of wrong elements in this rank's result, after `prepare` and one call."""
        buffer, values = self.result
        return int((buffer != values()).sum())

    def clear(self) -> None:
        """Zero the buffers, so that sums do not grow over repeated calls."""
        for buffer, _ in (self.given, self.result):
            buffer.zero_()


def element_count(size: int, dtype: torch.dtype, world_size: int) -> int:
    """Return the number of elements of an array of about `size` bytes: a multiple of the number of ranks."""
    return max(1, size // dtype.itemsize // world_size) * world_size


def all_reduce(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank the sum."""
    buffer = _empty(count, place)
    return Collective(
        lambda: dist.all_reduce(buffer),
        (buffer, lambda: _summand(count, place)),
        (buffer, lambda: _values(count, place)),
    )


def reduce_scatter(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank its part of the sum."""
    share = count // place.world_size
    source, result = _empty(count, place), _empty(share, place)
    # torch 2.13 renamed it.
    function: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    return Collective(
        lambda: function(result, source),
        (source, lambda: _summand(count, place)),
        (result, lambda: _values(share, place, place.rank * share)),
    )


def all_gather(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank the parts of all ranks."""
    share = count // place.world_size
    source, result = _empty(share, place), _empty(count, place)
    function: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    return Collective(
        lambda: function(result, source),
        (source, lambda: _values(share, place, place.rank * share)),
        (result, lambda: _values(count, place)),
    )


def broadcast(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank the array of rank 0."""
    buffer = _empty(count, place)
    given = (lambda: _values(count, place)) if place.rank == 0 else (lambda: torch.zeros_like(buffer))
    return Collective(lambda: dist.broadcast(buffer, src=0), (buffer, given), (buffer, lambda: _values(count, place)))


def send_receive(count: int, place: Place) -> Collective:
    """Return a collective in which every rank sends the whole array to the next one and receives the previous one's."""
    source, result = _empty(count, place), _empty(count, place)
    after, before = (place.rank + 1) % place.world_size, (place.rank - 1) % place.world_size

    def call() -> None:
        sends = dist.P2POp(dist.isend, source, after)
        for work in dist.batch_isend_irecv([sends, dist.P2POp(dist.irecv, result, before)]):
            work.wait()

    return Collective(
        call,
        (source, lambda: _values(count, place, 7 * place.rank)),
        (result, lambda: _values(count, place, 7 * before)),
    )


@dataclass(frozen=True)
class Kind:
    """A collective that can be measured.

    label:  its name on the page
    factor: the bus bandwidth over the algorithm bandwidth for a number of ranks, as nccl-tests defines it
            (NVIDIA/nccl-tests, doc/PERFORMANCE.md), so that figures of different collectives and numbers of ranks can
            be compared with the hardware's
    make:   returns it for arrays of a number of elements
    """

    label: str
    factor: Callable[[int], float]
    make: Callable[[int, Place], Collective]


COLLECTIVES = {
    "all_reduce": Kind("all-reduce", lambda ranks: 2 * (ranks - 1) / ranks, all_reduce),
    "all_gather": Kind("all-gather", lambda ranks: (ranks - 1) / ranks, all_gather),
    "reduce_scatter": Kind("reduce-scatter", lambda ranks: (ranks - 1) / ranks, reduce_scatter),
    "broadcast": Kind("broadcast", lambda _: 1.0, broadcast),
    "send_receive": Kind("point to point", lambda _: 1.0, send_receive),  # of src/sendrecv.cu
}


def _empty(count: int, place: Place) -> Tensor:
    return torch.empty(count, dtype=place.dtype, device=place.device)


def _values(count: int, place: Place, first: int = 0) -> Tensor:
    """Return `count` values of a periodic array of whole numbers from 1, starting at element `first`."""
    period = torch.arange(1, PERIOD + 1, device=place.device).to(place.dtype).roll(-first)
    return period.repeat(count // PERIOD + 1)[:count]


def _summand(count: int, place: Place) -> Tensor:
    """Return this rank's summand. The sum over the ranks is `_values`: each period has its values on one rank, and 0 on
    the others, so that the sum is exact in every dtype and any order."""
    periods = torch.arange(count // PERIOD + 1, device=place.device)
    own = (periods % place.world_size == place.rank).to(place.dtype)
    return _values(count, place).mul_(own.repeat_interleave(PERIOD)[:count])
