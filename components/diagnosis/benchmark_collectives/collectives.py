"""The collectives that are measured: each rank's input, the call, and the expected result on every rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor

CHUNK = 1 << 22
"""Elements filled or compared at once: the indices of a whole array of GiB would take eight times its memory."""

Values: TypeAlias = Callable[[Tensor], Tensor]
"""Maps indices of the whole array to the values at them."""


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
    given:   this rank's input buffer, the index of its first element in the whole array, and its values
    result:  this rank's output, in the same form
    own:     the buffers, each once
    """

    call: Callable[[], object]
    given: tuple[Tensor, int, Values]
    result: tuple[Tensor, int, Values]
    own: tuple[Tensor, ...]

    def prepare(self) -> None:
        """Fill the input and zero the other buffers."""
        self.clear()
        buffer, first, values = self.given
        for start, indices in _chunks(buffer, first):
            buffer[start : start + len(indices)] = values(indices).to(buffer.dtype)

    def wrong(self) -> int:
        """Return the number of wrong elements in this rank's result, after `prepare` and one call."""
        buffer, first, values = self.result
        wrong = 0
        for start, indices in _chunks(buffer, first):
            wrong += int((buffer[start : start + len(indices)].double() != values(indices).double()).sum())
        return wrong

    def clear(self) -> None:
        """Zero the buffers, so that sums do not grow over repeated calls."""
        for buffer in self.own:
            buffer.zero_()


def element_count(size: int, dtype: torch.dtype, world_size: int) -> int:
    """Return the elements of a whole array of about `size` bytes: the same number for each rank, at least one."""
    return max(1, size // dtype.itemsize // world_size) * world_size


def all_reduce(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank the sum."""
    buffer = _empty(count, place)
    return Collective(lambda: dist.all_reduce(buffer), (buffer, 0, _part(place)), (buffer, 0, _sum), (buffer,))


def reduce_scatter(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank its part of the sum."""
    share = count // place.world_size
    source, result = _empty(count, place), _empty(share, place)
    # torch 2.13 renamed it.
    function: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    return Collective(
        lambda: function(result, source),
        (source, 0, _part(place)),
        (result, place.rank * share, _sum),
        (source, result),
    )


def all_gather(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank the parts of all ranks."""
    share = count // place.world_size
    source, result = _empty(share, place), _empty(count, place)
    function: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    return Collective(
        lambda: function(result, source), (source, place.rank * share, _data), (result, 0, _data), (source, result)
    )


def broadcast(count: int, place: Place) -> Collective:
    """Return a collective that gives every rank the array of rank 0."""
    buffer = _empty(count, place)
    values = _data if place.rank == 0 else torch.zeros_like
    return Collective(lambda: dist.broadcast(buffer, src=0), (buffer, 0, values), (buffer, 0, _data), (buffer,))


def send_receive(count: int, place: Place) -> Collective:
    """Return a collective in which every rank sends the whole array to the next one and receives the previous one's."""
    source, result = _empty(count, place), _empty(count, place)
    after, before = (place.rank + 1) % place.world_size, (place.rank - 1) % place.world_size

    def call() -> None:
        sends = dist.P2POp(dist.isend, source, after)
        for work in dist.batch_isend_irecv([sends, dist.P2POp(dist.irecv, result, before)]):
            work.wait()

    return Collective(call, (source, 0, _data_of(place.rank)), (result, 0, _data_of(before)), (source, result))


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


def _data(indices: Tensor) -> Tensor:
    return indices % 97 + 1


def _data_of(rank: int) -> Values:
    return lambda indices: (indices + 7 * rank) % 97 + 1


def _part(place: Place) -> Values:
    """Return this rank's summand. At every element two ranks have a value and the others 0: the sum is at most 128,
    which is exact in every dtype, for any order of summation and any number of ranks."""

    def values(indices: Tensor) -> Tensor:
        first = (indices % 97 + 1) * (indices % place.world_size == place.rank)
        second = (indices % 31 + 1) * ((indices + 1) % place.world_size == place.rank)
        return first + second

    return values


def _sum(indices: Tensor) -> Tensor:
    return indices % 97 + indices % 31 + 2


def _chunks(buffer: Tensor, first: int) -> Iterator[tuple[int, Tensor]]:
    """Yield the start of each chunk of the buffer, and its elements' indices in the whole array."""
    for start in range(0, len(buffer), CHUNK):
        stop = min(start + CHUNK, len(buffer))
        yield start, torch.arange(first + start, first + stop, device=buffer.device)
