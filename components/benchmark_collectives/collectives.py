"""The collectives that are measured: what each rank gives, what is called, and what every rank has to have then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor

CHUNK = 1 << 22
"""Elements that are filled or compared at once: the numbers of an array of GiB would take eight times as much."""

Values: TypeAlias = Callable[[Tensor], Tensor]
"""What stands at these indices of the whole array."""


@dataclass(frozen=True)
class Place:
    """Among whom: this rank, the number of ranks, where tensors are, and their type."""

    rank: int
    world_size: int
    device: torch.device
    dtype: torch.dtype


@dataclass(frozen=True)
class Collective:
    """A collective on buffers of its own.

    call:    do it once; on a GPU it is only queued
    given:   what this rank gives, with the index of its first element and what stands in it
    result:  what this rank has then, the same
    own:     the buffers, no one twice
    """

    call: Callable[[], object]
    given: tuple[Tensor, int, Values]
    result: tuple[Tensor, int, Values]
    own: tuple[Tensor, ...]

    def prepare(self) -> None:
        """Fill the buffers."""
        for buffer in self.own:
            buffer.zero_()
        buffer, first, values = self.given
        for start, indices in _chunks(buffer, first):
            buffer[start : start + len(indices)] = values(indices).to(buffer.dtype)

    def wrong(self) -> int:
        """How many elements of this rank's result are wrong, after `prepare` and one call."""
        buffer, first, values = self.result
        wrong = 0
        for start, indices in _chunks(buffer, first):
            wrong += int((buffer[start : start + len(indices)].double() != values(indices).double()).sum())
        return wrong

    def clear(self) -> None:
        """Make the buffers zero, so that sums of sums stay what they are, however often it is called."""
        for buffer in self.own:
            buffer.zero_()


def element_count(size: int, dtype: torch.dtype, world_size: int) -> int:
    """Elements of the whole array for about so many bytes: at least one for each rank, and as many for each."""
    return max(1, size // dtype.itemsize // world_size) * world_size


def all_reduce(count: int, place: Place) -> Collective:
    """Every rank has the sum."""
    buffer = _empty(count, place)
    return Collective(lambda: dist.all_reduce(buffer), (buffer, 0, _part(place)), (buffer, 0, _sum), (buffer,))


def reduce_scatter(count: int, place: Place) -> Collective:
    """Every rank has its part of the sum."""
    share = count // place.world_size
    given, result = _empty(count, place), _empty(share, place)
    # torch 2.13 renamed it.
    function: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    return Collective(
        lambda: function(result, given),
        (given, 0, _part(place)),
        (result, place.rank * share, _sum),
        (given, result),
    )


def all_gather(count: int, place: Place) -> Collective:
    """Every rank has every rank's part."""
    share = count // place.world_size
    given, result = _empty(share, place), _empty(count, place)
    function: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    return Collective(
        lambda: function(result, given), (given, place.rank * share, _data), (result, 0, _data), (given, result)
    )


def broadcast(count: int, place: Place) -> Collective:
    """Every rank has what rank 0 gave."""
    buffer = _empty(count, place)
    given = _data if place.rank == 0 else torch.zeros_like
    return Collective(lambda: dist.broadcast(buffer, src=0), (buffer, 0, given), (buffer, 0, _data), (buffer,))


def send_receive(count: int, place: Place) -> Collective:
    """Every rank sends the whole array to the next one, and has what the one before it sent."""
    given, result = _empty(count, place), _empty(count, place)
    after, before = (place.rank + 1) % place.world_size, (place.rank - 1) % place.world_size

    def call() -> None:
        sends = dist.P2POp(dist.isend, given, after)
        for work in dist.batch_isend_irecv([sends, dist.P2POp(dist.irecv, result, before)]):
            work.wait()

    return Collective(call, (given, 0, _data_of(place.rank)), (result, 0, _data_of(before)), (given, result))


COLLECTIVES: dict[str, Callable[[int, Place], Collective]] = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "broadcast": broadcast,
    "send_receive": send_receive,
}


def _empty(count: int, place: Place) -> Tensor:
    return torch.empty(count, dtype=place.dtype, device=place.device)


def _data(indices: Tensor) -> Tensor:
    return indices % 97 + 1


def _data_of(rank: int) -> Values:
    return lambda indices: (indices + 7 * rank) % 97 + 1


def _part(place: Place) -> Values:
    """What this rank adds. At every element two ranks give something and the others nothing: the sum is at most 128,
    which is exact in every dtype, by whatever order it is made and however many ranks there are."""

    def values(indices: Tensor) -> Tensor:
        first = (indices % 97 + 1) * (indices % place.world_size == place.rank)
        second = (indices % 31 + 1) * ((indices + 1) % place.world_size == place.rank)
        return first + second

    return values


def _sum(indices: Tensor) -> Tensor:
    return indices % 97 + indices % 31 + 2


def _chunks(buffer: Tensor, first: int) -> Iterator[tuple[int, Tensor]]:
    """Where each part of the buffer starts, and its elements' indices in the whole array."""
    for start in range(0, len(buffer), CHUNK):
        stop = min(start + CHUNK, len(buffer))
        yield start, torch.arange(first + start, first + stop, device=buffer.device)
