"""Wait for all tasks before TensorFlow starts. TensorFlow waits for a missing task for ever, and holds the GIL."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress

from allranks.contract import variables
from allranks.runtime.tensorflow.cluster import Cluster

RETRY_SECONDS = 0.1
"""Pause between two attempts to connect to the chief."""

LINE = 100
"""Maximum length of a message in bytes: a task's name, or "go"."""

GO = "go"


def roll_call(cluster: Cluster, timeout_seconds: float) -> dict[str, socket.socket]:
    """Wait until every task of the cluster has started. The chief listens at its own port, which TensorFlow uses later.

    Return the open connections by the other task's name: of the chief to all others, of the others to the chief.

    Raise ConnectionError, which names the missing tasks, if not all tasks connect within timeout_seconds.
    """
    deadline = time.monotonic() + timeout_seconds
    if cluster.is_chief:
        return _wait_for_tasks(cluster, deadline, timeout_seconds)
    return {_name(cluster.chief): _register(cluster, deadline, timeout_seconds)}


def _wait_for_tasks(cluster: Cluster, deadline: float, timeout_seconds: float) -> dict[str, socket.socket]:
    endpoint = cluster.endpoint(cluster.chief)
    missing = {_name(task): cluster.endpoint(task) for task in cluster.others}
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("", variables.split_endpoint(endpoint)[1] or 0)))
        except OSError as error:
            raise ConnectionError(f"the chief cannot listen at {endpoint}: {error.strerror}") from None
        connections: dict[str, socket.socket] = {}
        while missing:
            listener.settimeout(max(deadline - time.monotonic(), RETRY_SECONDS))
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                tasks = ", ".join(f"{name} at {address}" for name, address in missing.items())
                raise ConnectionError(f"{tasks} did not appear within {timeout_seconds:g} s") from None
            name = _receive_line(connection, RETRY_SECONDS * LINE)
            if missing.pop(name, None) is None:
                connection.close()
            else:
                connections[name] = stack.enter_context(connection)
        for connection in connections.values():
            with suppress(OSError):  # a task that has already ended is detected by the watch
                connection.sendall(f"{GO}\n".encode())
        listener.close()
        stack.pop_all()
        return connections


def _register(cluster: Cluster, deadline: float, timeout_seconds: float) -> socket.socket:
    endpoint = cluster.endpoint(cluster.chief)
    host, port = variables.split_endpoint(endpoint)
    while (remaining := deadline - time.monotonic()) > 0:
        with suppress(OSError):
            connection = socket.create_connection((host, port or 0), timeout=remaining)
            with suppress(OSError):
                connection.sendall(f"{_name((cluster.role, cluster.index))}\n".encode())
                if _receive_line(connection, remaining) == GO:
                    return connection
            connection.close()
        time.sleep(RETRY_SECONDS)
    raise ConnectionError(
        f"the chief at {endpoint} did not call within {timeout_seconds:g} s: either it is not there, or another task is"
        " missing, which it names in its own log"
    )


def _receive_line(connection: socket.socket, timeout_seconds: float) -> str:
    """Return the line that the other task sends; "" if it sends none."""
    try:
        connection.settimeout(timeout_seconds)
        with connection.makefile("r", encoding="utf-8", errors="replace") as lines:
            return lines.readline(LINE).strip()
    except OSError:
        return ""


def _name(task: tuple[str, int]) -> str:
    return f"{task[0]} {task[1]}"
