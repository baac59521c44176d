"""Measure the network between the instances, and verify a first all-reduce."""

import time
from dataclasses import dataclass

import torch
from torch import distributed

from allranks.contract.rank_env import RankEnv

SLOW_BYTES_PER_SECOND = 50e6 / 8
"""50 Mbit/s. Networks of rented clusters are faster, and a training over a slower one would hardly progress."""

_PROBE_BYTES = 1 << 16
_BYTES = 1 << 20
_TRIES = 3
_SLOW_PROBE_SECONDS = 1.0
_VALUES = 1 << 18


@dataclass(frozen=True)
class Link:
    """The network between two instances: bytes per second from one to the other and back, the best of several tries."""

    one: int
    other: int
    there: float
    back: float

    @property
    def slow(self) -> bool:
        return min(self.there, self.back) < SLOW_BYTES_PER_SECOND


@dataclass(frozen=True)
class Sum:
    """A rank's first two all-reduces of 1 MiB: whether the sums were right, and the seconds of the second one."""

    right: bool
    seconds: float


def measure_links(env: RankEnv) -> list[Link]:
    """Measure the links of the ring of instances, and return the one that starts at this rank's instance. Return [] if
    there is none, or if this is not the first rank of its instance.

    Every rank must call it. It takes milliseconds, or seconds if a link is slow.
    """
    if env.local_rank != 0 or env.instance_count < 2:
        return []
    count = env.instance_count
    # In three rounds, so that no instance has two links in use at once: (0, 1), (2, 3), ...; (1, 2), ...; and the link
    # that closes the ring.
    ring = [(one, (one + 1) % count) for one in range(count if count > 2 else 1)]
    rounds = [ring[0 : count - 1 : 2], ring[1 : count - 1 : 2], ring[count - 1 :]]
    links = []
    for one, other in (link for links_of_round in rounds for link in links_of_round):
        if env.instance_rank == one:
            links.append(_measure(one, other, other * env.local_world_size))
        elif env.instance_rank == other:
            _answer(one * env.local_world_size)
    return links


def first_sum(env: RankEnv, device: torch.device) -> Sum:
    """Run two all-reduces of 1 MiB of float32 on the rank's device. The first one opens the connections."""
    right = True
    seconds = 0.0
    for _ in range(2):
        values = torch.full((_VALUES,), float(env.rank + 1), device=device)
        start = time.perf_counter()
        distributed.all_reduce(values)
        low, high = values.min().item(), values.max().item()  # item() waits for the GPU
        seconds = time.perf_counter() - start
        right = right and low == high == env.world_size * (env.world_size + 1) / 2
    return Sum(right, seconds)


def _measure(one: int, other: int, peer: int) -> Link:
    send_rate = receive_rate = 0.0
    # A small probe first, so that a link of some kbit/s does not take minutes.
    sizes = [_PROBE_BYTES] + [_BYTES] * _TRIES
    for number, size in enumerate(sizes):
        distributed.send(torch.tensor([size]), peer)
        payload = torch.zeros(size, dtype=torch.uint8)
        start = time.perf_counter()
        distributed.send(payload, peer)
        distributed.recv(torch.empty(1, dtype=torch.uint8), peer)
        received = time.perf_counter()
        distributed.send(torch.empty(1, dtype=torch.uint8), peer)
        distributed.recv(payload, peer)
        end = time.perf_counter()
        if number:
            send_rate = max(send_rate, size / (received - start))
            receive_rate = max(receive_rate, size / (end - received))
            if min(send_rate, receive_rate) >= SLOW_BYTES_PER_SECOND:
                break
        elif end - start > _SLOW_PROBE_SECONDS:
            send_rate, receive_rate = size / (received - start), size / (end - received)
            break
    distributed.send(torch.tensor([0]), peer)
    return Link(one, other, send_rate, receive_rate)


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
