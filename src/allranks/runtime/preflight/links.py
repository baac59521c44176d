"""How fast the instances reach each other, and whether a first all-reduce is right."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass

import torch
from torch import distributed

from allranks.contract.rank_env import RankEnv

SLOW_BYTES_PER_SECOND = 50e6 / 8
"""50 Mbit/s. No network that a cluster is rented with is slower by itself; a training on one would stand still."""

_PROBE_BYTES = 1 << 16
_BYTES = 1 << 20
_TRIES = 3
_HOPELESS_SECONDS = 1.0
_VALUES = 1 << 18


@dataclass(frozen=True)
class Link:
    """The network between two instances: bytes per second there and back, the best of several tries."""

    one: int
    other: int
    there: float
    back: float

    @property
    def slow(self) -> bool:
        return min(self.there, self.back) < SLOW_BYTES_PER_SECOND


@dataclass(frozen=True)
class Sum:
    """A rank's first all-reduce of 1 MiB: whether the sum was right, and the seconds that a second one took."""

    right: bool
    seconds: float


def measure_links(env: RankEnv) -> list[Link]:
    """Return the links of the ring of instances that start at this rank's: one, or none where it does not speak for its
    instance. Every rank has to call it; it takes some milliseconds, and seconds where a link is slow.
    """
    if env.local_rank != 0 or env.instance_count < 2:
        return []
    count = env.instance_count
    # Neighbours in turns, so that no instance speaks to two at once: (0, 1), (2, 3), ...; (1, 2), ...; the one that
    # closes the ring.
    ring = [(one, (one + 1) % count) for one in range(count if count > 2 else 1)]
    turns = [ring[0 : count - 1 : 2], ring[1 : count - 1 : 2], ring[count - 1 :]]
    links = []
    for one, other in (pair for turn in turns for pair in turn):
        if env.instance_rank == one:
            links.append(_ask(one, other, other * env.local_world_size))
        elif env.instance_rank == other:
            _answer(one * env.local_world_size)
    return links


def first_sum(env: RankEnv, device: torch.device) -> Sum:
    """All-reduce 1 MiB of float32 on the rank's own device, twice: the first opens the connections."""
    right = True
    seconds = 0.0
    for _ in range(2):
        values = torch.full((_VALUES,), float(env.rank + 1), device=device)
        start = time.perf_counter()
        distributed.all_reduce(values)
        low, high = values.min().item(), values.max().item()  # which also waits for the GPU
        seconds = time.perf_counter() - start
        right = right and low == high == env.world_size * (env.world_size + 1) / 2
    return Sum(right, seconds)


def as_text(links: list[Link], total: Sum) -> str:
    return json.dumps({"links": [asdict(link) for link in links], "sum": asdict(total)})


def of_text(text: str | bytes) -> tuple[list[Link], Sum]:
    record = json.loads(text)
    return [Link(**link) for link in record["links"]], Sum(**record["sum"])


def _ask(one: int, other: int, peer: int) -> Link:
    there = back = 0.0
    # A look first, so that a link of some kilobits does not take minutes.
    sizes = [_PROBE_BYTES] + [_BYTES] * _TRIES
    for number, size in enumerate(sizes):
        distributed.send(torch.tensor([size]), peer)
        payload = torch.zeros(size, dtype=torch.uint8)
        start = time.perf_counter()
        distributed.send(payload, peer)
        distributed.recv(torch.empty(1, dtype=torch.uint8), peer)
        turned = time.perf_counter()
        distributed.send(torch.empty(1, dtype=torch.uint8), peer)
        distributed.recv(payload, peer)
        end = time.perf_counter()
        if number:
            there, back = max(there, size / (turned - start)), max(back, size / (end - turned))
            if min(there, back) >= SLOW_BYTES_PER_SECOND:
                break
        elif end - start > _HOPELESS_SECONDS:
            there, back = size / (turned - start), size / (end - turned)
            break
    distributed.send(torch.tensor([0]), peer)
    return Link(one, other, there, back)


def _answer(peer: int) -> None:
    size = torch.empty(1, dtype=torch.int64)
    while True:
        distributed.recv(size, peer)
        if not size.item():
            return
        payload = torch.empty(int(size.item()), dtype=torch.uint8)
        distributed.recv(payload, peer)
        distributed.send(torch.empty(1, dtype=torch.uint8), peer)
        distributed.recv(torch.empty(1, dtype=torch.uint8), peer)
        distributed.send(payload, peer)
