"""All tasks meet before TensorFlow starts: it would wait for one that never comes for ever, and hold Python's lock."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress

from allranks.contract import master
from allranks.runtime.tensorflow.cluster import Cluster

RETRY_SECONDS = 0.1
"""Between two tries to reach the chief."""

LINE = 100
"""Bytes of what a task says: its name, or go."""

GO = "go"


def roll_call(cluster: Cluster, timeout_seconds: float) -> None:
    """Wait until every task of the cluster is up. The chief listens at its own port, which TensorFlow uses afterwards.

    Raise ConnectionError, that names who is missing, where the tasks did not meet within timeout_seconds.
    """
    deadline = time.monotonic() + timeout_seconds
    if cluster.is_chief:
        _call(cluster, deadline, timeout_seconds)
    else:
        _answer(cluster, deadline, timeout_seconds)


def _call(cluster: Cluster, deadline: float, timeout_seconds: float) -> None:
    endpoint = cluster.endpoint(cluster.chief)
    missing = {_name(task): cluster.endpoint(task) for task in cluster.others}
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("", master.split(endpoint)[1] or 0)))
        except OSError as error:
            raise ConnectionError(f"the chief cannot listen at {endpoint}: {error.strerror}") from None
        here = []
        while missing:
            listener.settimeout(max(deadline - time.monotonic(), RETRY_SECONDS))
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                tasks = ", ".join(f"{name} at {where}" for name, where in missing.items())
                raise ConnectionError(f"{tasks} did not appear within {timeout_seconds:g} s") from None
            stack.enter_context(connection)
            if missing.pop(_said(connection, RETRY_SECONDS * LINE), None) is not None:
                here.append(connection)
        for connection in here:
            with suppress(OSError):  # a task that is gone already is missed by whoever watches it
                connection.sendall(f"{GO}\n".encode())


def _answer(cluster: Cluster, deadline: float, timeout_seconds: float) -> None:
    endpoint = cluster.endpoint(cluster.chief)
    host, port = master.split(endpoint)
    while (left := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection((host, port or 0), timeout=left) as connection:
                connection.sendall(f"{_name((cluster.role, cluster.index))}\n".encode())
                if _said(connection, left) == GO:
                    return
        except OSError:
            pass
        time.sleep(RETRY_SECONDS)
    raise ConnectionError(
        f"the chief at {endpoint} did not call within {timeout_seconds:g} s: either it is not there, or another task is"
        " missing, which it names in its own log"
    )


def _said(connection: socket.socket, timeout_seconds: float) -> str:
    """Return the line that comes; nothing where none does."""
    try:
        connection.settimeout(timeout_seconds)
        with connection.makefile("r", encoding="utf-8", errors="replace") as lines:
            return lines.readline(LINE).strip()
    except OSError:
        return ""


def _name(task: tuple[str, int]) -> str:
    return f"{task[0]} {task[1]}"
