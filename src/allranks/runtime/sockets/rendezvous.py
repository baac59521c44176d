"""Connect every rank to rank 0, at the master's address."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence

from allranks.contract import world
from allranks.contract.rank_env import RankEnv
from allranks.runtime.sockets import messages

RETRY_SECONDS = 0.1
"""Pause between two attempts to connect to rank 0."""

GREETING_SECONDS = 10.0
"""How long a connection may take to say which rank it is."""

LIMIT = 1000
"""Maximum length of a greeting in bytes."""

KEEPALIVE_SECONDS = 15
"""After how long a silent connection is probed. An instance that has lost its power closes no connection."""


def connect(env: RankEnv, timeout_seconds: float, join_seconds: float | None = None) -> dict[int, socket.socket]:
    """Return the connections of this rank, by the other rank: on rank 0 to every other rank, on the others to rank 0.

    Rank 0 listens at the master's port. Every rank says which rank of which job it is, and rank 0 answers when all are
    there.

    timeout_seconds: the time-out of the connections
    join_seconds:    how long to wait for the others; None: timeout_seconds

    Raise InputError if there is no master address. Raise ConnectionError, which names the missing ranks, if not all
    ranks connect in time.
    """
    if env.world_size == 1:
        return {}
    env.master()
    deadline = time.monotonic() + (timeout_seconds if join_seconds is None else join_seconds)
    connections = _accept(env, deadline) if env.rank == 0 else {0: _register(env, deadline)}
    for connection in connections.values():
        connection.settimeout(timeout_seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            connection.setsockopt(socket.IPPROTO_TCP, option, KEEPALIVE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return connections


def _accept(env: RankEnv, deadline: float) -> dict[int, socket.socket]:
    try:
        listener = socket.create_server(("", env.master_port or 0))
    except OSError as error:
        raise ConnectionError(f"rank 0 cannot listen at port {env.master_port}: {error.strerror}") from None
    connections: dict[int, socket.socket] = {}
    with listener:
        while len(connections) < env.world_size - 1:
            listener.settimeout(max(deadline - time.monotonic(), RETRY_SECONDS))
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                missing = sorted(set(range(1, env.world_size)) - connections.keys())
                raise ConnectionError(f"{_names(env, missing)} did not connect in time") from None
            rank = _greeted(connection, env)
            if rank is None:
                connection.close()
                continue
            connections[rank] = connection
    for connection in connections.values():
        messages.send(connection, b"")
    return dict(sorted(connections.items()))


def _names(env: RankEnv, ranks: Sequence[int]) -> str:
    by_instance: dict[int, list[int]] = {}
    for rank in ranks:
        by_instance.setdefault(rank // env.local_world_size, []).append(rank)
    return "; ".join(
        f"{world.instance_name(number)}, rank {', '.join(map(str, missing))}" for number, missing in by_instance.items()
    )


def _greeted(connection: socket.socket, env: RankEnv) -> int | None:
    """Return the rank at the other end; None if it is no rank of this job."""
    connection.settimeout(GREETING_SECONDS)
    try:
        greeting = messages.decode(messages.receive(connection, LIMIT))
        rank = int(greeting.pop("rank"))
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    return rank if greeting == _job(env) and 0 < rank < env.world_size else None


def _register(env: RankEnv, deadline: float) -> socket.socket:
    greeting = messages.encode({"rank": env.rank, **_job(env)})
    while (remaining := deadline - time.monotonic()) > 0:
        connection = None
        try:
            connection = socket.create_connection((env.master_addr or "", env.master_port or 0), timeout=remaining)
            messages.send(connection, greeting)
            messages.receive(connection, LIMIT)
        except OSError:  # rank 0 does not listen yet, or its name does not resolve yet
            if connection is not None:
                connection.close()
            time.sleep(RETRY_SECONDS)
        else:
            return connection
    raise ConnectionError(
        f"{world.instance_name(0)}, rank 0 at {env.master_addr}:{env.master_port} did not answer in time: either it is "
        "not there, or another rank is missing, which it names in its own log"
    )


def _job(env: RankEnv, environ: Mapping[str, str] = os.environ) -> dict[str, object]:
    return {"world_size": env.world_size, "job": environ.get("AZUREML_ROOT_RUN_ID", "")}
