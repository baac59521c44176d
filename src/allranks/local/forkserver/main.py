"""The process of a fork server: import modules, then fork an agent for each request of the supervisor."""

import json
import os
import select
import socket
import warnings
from functools import partial
from typing import Any, NoReturn

from allranks.local.forkserver import flight_recorder
from allranks.local.forkserver.preloaded import Preloaded, preload
from allranks.local.forkserver.server import Server
from allranks.local.instances import agent, kernel
from allranks.local.instances.instance import find
from allranks.local.instances.process_log import ProcessLog

MESSAGE = 1 << 16
"""Maximum bytes of a message of the supervisor."""

DESCRIPTORS = 8
"""Maximum number of descriptors that come with a message."""


def main(parent: str, *modules: str) -> NoReturn:
    """Import the modules and serve the supervisor, which stdin is connected to, until it ends.

    parent: the process id of the supervisor
    """
    connection = socket.socket(fileno=os.dup(0))
    try:
        kernel.die_with_parent()
        if os.getppid() == int(parent):
            serve(connection, modules)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the supervisor has ended
    finally:
        # The finalisation of an interpreter with many modules takes long.
        os._exit(0)


def serve(connection: socket.socket, modules: tuple[str, ...]) -> None:
    """Import the modules, report whether agents can be forked, and fork them until the supervisor closes the
    connection.

    Messages in both directions are JSON objects. A message of the supervisor requests an agent: it has the isolation
    and the index of its instance, and the names of the attached descriptors. The answers are `ready`, `unfit` with the
    reason, `forked` and `failed` with the index, and `ended` with the process id and the status of an agent.
    """
    preloaded = preload(modules, reserved=(connection.fileno(),))
    if preloaded.unfit:
        _send(connection, event="unfit", reason=preloaded.unfit)
        return
    flight_recorder.install()
    wake = agent.wake_on_exit()
    _send(connection, event="ready")
    while True:
        ready, _, _ = select.select([connection.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            for pid, status, _ in agent.ended_children():
                _send(connection, event="ended", pid=pid, status=status)
        if connection.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(connection, MESSAGE, DESCRIPTORS)
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            if not data:
                return
            _fork(connection, json.loads(data), descriptors, preloaded)


def _fork(connection: socket.socket, request: dict[str, Any], descriptors: list[int], preloaded: Preloaded) -> None:
    """Fork an agent, and report whether that succeeded."""
    shared = dict(zip(request["descriptors"], descriptors, strict=True))
    isolation = find(request["isolation"]).agent(shared.get("network"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns where a library has started threads
            pid = isolation.fork()
    except OSError as error:
        _send(connection, event="failed", index=request["index"], reason=str(error))
    else:
        if not pid:
            connection.close()
            log = ProcessLog(f"agent {request['index']}", descriptor=shared.get("log", -1))
            agent.run(isolation, shared["control"], shared["events"], log, partial(Server, preloaded))
        _send(connection, event="forked", index=request["index"], pid=pid)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _send(connection: socket.socket, **message: Any) -> None:
    connection.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)
