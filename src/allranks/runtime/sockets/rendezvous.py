"""Connect every rank to rank 0, which listens at a known port. A message is a length, followed by as many bytes."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from allranks.contract import world
from allranks.contract.rank_env import RankEnv

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH = struct.Struct("!Q")
Name = TypeVar("Name", int, str)
"""The name of a rank: its number, or a TensorFlow task such as "worker 1"."""
RETRY_SECONDS = 0.1
"""Pause between two attempts to connect to the listening rank."""
GREETING_SECONDS = 10.0
"""Time limit for a connection to send its rank."""
LIMIT = 1000
"""Maximum length of a greeting in bytes."""
KEEPALIVE_SECONDS = 15
"""Time after which a silent connection is probed. An instance without power closes no connection."""


def send(connection: socket.socket, payload: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(payload)))
    connection.sendall(payload)


def receive(connection: socket.socket, limit: int | None = None) -> bytes:
    """Return the next message. Raise ConnectionError if the connection ends before, or the message is longer than
    `limit` bytes."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if limit is not None and length > limit:
        raise ConnectionError(f"a message of {length} bytes is too long")
    return _exactly(connection, length)


def encode_array(array: NDArray[Any]) -> bytes:
    """Encode an array in NumPy's format. Unlike a pickle, it cannot make its reader run code."""
    import numpy as np  # an environment for scripts does not have it

    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return file.getvalue()


def decode_array(payload: bytes) -> NDArray[Any]:
    import numpy as np  # an environment for scripts does not have it

    return np.lib.format.read_array(io.BytesIO(payload), allow_pickle=False)


def _exactly(connection: socket.socket, length: int) -> bytes:
    buffer = bytearray(length)
    view, start = memoryview(buffer), 0
    while start < length:
        count = connection.recv_into(view[start:])
        if not count:
            raise ConnectionError("the connection has ended")
        start += count
    return bytes(buffer)


def connect(env: RankEnv, timeout_seconds: float, join_seconds: float | None = None) -> dict[int, socket.socket]:
    """Return the connections of this rank, by the other rank: on rank 0 to every other rank, on the others to rank 0.

    timeout_seconds: the time-out of the connections
    join_seconds:    time limit for the others; None: timeout_seconds

    Raise InputError if there is no master address. Raise ConnectionError, which names the missing ranks, if not all
    ranks connect in time.
    """
    if env.world_size == 1:
        return {}
    host, port = env.master()
    seconds = timeout_seconds if join_seconds is None else join_seconds
    if env.rank == 0:
        connections = accept(port, range(1, env.world_size), seconds, "rank 0", lambda missing: _labels(env, missing))
    else:
        connections = {0: register(host, port, env.rank, env.world_size, seconds, f"{world.instance_name(0)}, rank 0")}
    for connection in connections.values():
        connection.settimeout(timeout_seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            connection.setsockopt(socket.IPPROTO_TCP, option, KEEPALIVE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return connections


def accept(
    port: int, others: Collection[Name], seconds: float, own_label: str, labels: Callable[[list[Name]], str]
) -> dict[Name, socket.socket]:
    """Listen until every other rank has connected, and answer all. Return the connections in the order of `others`.
    Other connections are closed.

    own_label: name of this rank in errors
    labels:    returns the names of missing ranks in errors

    Raise ConnectionError if the port is taken, or not all ranks connect in time.
    """
    deadline = time.monotonic() + seconds
    connections: dict[Name, socket.socket] = {}
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("", port)))
        except OSError as error:
            raise ConnectionError(f"{own_label} cannot listen at port {port}: {error.strerror}") from None
        while len(connections) < len(others):
            listener.settimeout(max(deadline - time.monotonic(), RETRY_SECONDS))
            try:
                connection = stack.enter_context(listener.accept()[0])
            except TimeoutError:
                missing = [name for name in others if name not in connections]
                raise ConnectionError(f"{labels(missing)} did not connect within {seconds:g} s") from None
            name = _greeted(connection, len(others) + 1)
            if name in others:
                connections[name] = connection
            else:
                connection.close()
        for connection in connections.values():
            with suppress(OSError):  # a rank that has already ended is lost, which the watch detects
                send(connection, b"")
        listener.close()
        stack.pop_all()
    return {name: connections[name] for name in others}


def register(host: str, port: int, name: Name, world_size: int, seconds: float, label: str) -> socket.socket:
    """Return a connection to the rank that listens at an address, once it has answered.

    name:  of this rank
    label: name of the listening rank in errors

    Raise ConnectionError if it does not answer in time.
    """
    deadline = time.monotonic() + seconds
    greeting = json.dumps({"rank": name, **_job(world_size)}).encode()
    while (remaining := deadline - time.monotonic()) > 0:
        with ExitStack() as stack, suppress(OSError):  # it does not listen yet, or its name does not resolve yet
            connection = stack.enter_context(socket.create_connection((host, port), timeout=remaining))
            send(connection, greeting)
            receive(connection, LIMIT)
            stack.pop_all()
            return connection
        time.sleep(RETRY_SECONDS)
    raise ConnectionError(
        f"{label} at {host}:{port} did not answer within {seconds:g} s: either it did not start, or another rank is "
        "missing, which it names in its own log"
    )


def _greeted(connection: socket.socket, world_size: int) -> Any:
    """Return the name of the connected rank; None if it does not belong to this job."""
    connection.settimeout(GREETING_SECONDS)
    try:
        greeting = json.loads(receive(connection, LIMIT))
        name = greeting.pop("rank")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return name if greeting == _job(world_size) else None


def _job(world_size: int) -> dict[str, object]:
    return {"world_size": world_size, "job": os.environ.get("AZUREML_ROOT_RUN_ID", "")}


def _labels(env: RankEnv, ranks: list[int]) -> str:
    by_instance: dict[int, list[int]] = {}
    for rank in ranks:
        by_instance.setdefault(rank // env.local_world_size, []).append(rank)
    return "; ".join(
        f"{world.instance_name(number)}, rank {', '.join(map(str, missing))}" for number, missing in by_instance.items()
    )
