"""Ranks without torch, connected by sockets, for libraries with their own communication (LightGBM), and for steps that
only add up results.

    from allranks.runtime import sockets

    def evaluate(ranks: sockets.Ranks) -> None:
        counts = ranks.all_gather(count(own_part))

    if __name__ == "__main__":
        sockets.main(evaluate)

The same script runs under every launcher that the contract supports, and as a single process.
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from allranks.contract import report, world
from allranks.contract.rank_env import RankEnv
from allranks.contract.variables import join_seconds
from allranks.contract.world import detect
from allranks.runtime import lifecycle
from allranks.runtime.lifecycle import TIMEOUT_SECONDS
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.ranks.machines import RankResources, machine_name, unique_machines
from allranks.runtime.sockets import rendezvous
from allranks.runtime.sockets.rendezvous import connect

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLOSED = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR
"""Linux: the other end has closed the connection. Not in the typed interface of other systems."""


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, and its connections to the others. Every rank must call the collectives, in the same
    order. They go through rank 0, so they are for small results.

    env:         the rank and layout of this process
    metrics:     logs to MLflow and to the live view
    connections: by rank: on rank 0 to every other rank, on the others to rank 0
    """

    env: RankEnv
    metrics: Metrics
    connections: Mapping[int, socket.socket] = field(default_factory=dict, repr=False)

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self.env.rank

    @property
    def world_size(self) -> int:
        """Number of all ranks."""
        return self.env.world_size

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    @property
    def address(self) -> str:
        """The address at which the other ranks reach this one; 127.0.0.1 without others."""
        connection = next(iter(self.connections.values()), None)
        return str(connection.getsockname()[0]) if connection else "127.0.0.1"

    @property
    def threads(self) -> int:
        """Number of threads for this rank: OMP_NUM_THREADS, or its share of the instance's cores."""
        chosen = os.environ.get("OMP_NUM_THREADS", "")
        if chosen.isdecimal() and int(chosen):
            return int(chosen)
        return max(1, len(os.sched_getaffinity(0)) // self.env.local_world_size)

    def all_gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in the order of the ranks. A collective.

        value: any JSON-serialisable value. Tuples become lists
        """
        gathered = self._gather(json.dumps(value).encode())
        return list(self.broadcast([json.loads(payload) for payload in gathered] if gathered else None))

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value. A collective. value: any JSON-serialisable value; ignored on other ranks"""
        if not self.is_main:
            return json.loads(rendezvous.receive(self.connections[0]))
        payload = json.dumps(value).encode()
        for connection in self.connections.values():
            rendezvous.send(connection, payload)
        return json.loads(payload)

    def gather_arrays(self, array: NDArray[Any]) -> list[NDArray[Any]] | None:
        """Return the arrays of all ranks on rank 0, in the order of the ranks; None on the others. A collective."""
        gathered = self._gather(rendezvous.encode_array(array))
        return None if gathered is None else [rendezvous.decode_array(payload) for payload in gathered]

    def any_rank(self, flag: bool) -> bool:
        """Return True on every rank if the flag is True on at least one. A collective."""
        return any(self.all_gather(bool(flag)))

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self.all_gather(None)

    def measured_on(self) -> dict[str, Any]:
        """Return a description of the hardware for a history: world_size, instance_count, device and machines. A
        collective."""
        gathered = self.all_gather([machine_name(), sorted(os.sched_getaffinity(0))])
        resources = [RankResources(name, frozenset(cores), None) for name, cores in gathered]
        return {
            "world_size": self.world_size,
            "instance_count": self.env.instance_count,
            "device": "cpu",
            "machines": unique_machines(resources),
        }

    def _gather(self, payload: bytes) -> list[bytes] | None:
        report.arrived()
        if not self.is_main:
            rendezvous.send(self.connections[0], payload)
            return None
        return [payload, *(rendezvous.receive(connection) for connection in self.connections.values())]


def main(function: Callable[[Ranks], None], *, timeout_seconds: float = TIMEOUT_SECONDS) -> NoReturn:
    """Connect the ranks, call function(ranks), and exit.

    function:        called on every rank
    timeout_seconds: time limit for the other ranks

    If a rank ends early, the others end within a second, also while they wait inside a library such as LightGBM, which
    would wait for minutes.

    Exit codes: 0 success, 1 an exception (recorded with its traceback) or a rank that was lost, 2 wrong input (an
    InputError), 143 saved and stopped for an eviction, 130 Ctrl-C. SystemExit determines its own code.
    """

    def join(ending: lifecycle.Ending) -> Callable[[], None]:
        env = detect()
        world.check(env)
        connections = connect(env, timeout_seconds, join_seconds(os.environ, timeout_seconds))
        ending.metrics = Metrics(is_main=env.rank == 0)
        ranks = Ranks(env, ending.metrics, connections)
        if connections:
            ending.watch_for(partial(_find_lost, connections))

            def wait() -> None:
                ending.stop_watch()  # a rank ends as soon as it has passed the barrier
                ranks.barrier()

            ending.wait = wait
        return partial(function, ranks)

    lifecycle.run(join)


def _find_lost(connections: Mapping[int, socket.socket]) -> ConnectionError | None:
    """Return an error that names a rank whose connection has ended. Read nothing from the connections."""
    poll = select.poll()
    for connection in connections.values():
        poll.register(connection, _CLOSED)
    ended = {descriptor for descriptor, _ in poll.poll(0)}
    for rank, connection in connections.items():
        if connection.fileno() in ended:
            return ConnectionError(f"rank {rank} has ended; its own log says why")
    return None
