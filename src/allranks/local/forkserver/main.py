"""The process of a fork server: import modules, then fork an agent for each request of the supervisor.

The process of `allranks warm` also requests forks of this process that serve another supervisor, in its namespaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from allranks.local.forkserver import flight_recorder, rank
from allranks.local.forkserver.preloaded import Preloaded, preload
from allranks.local.instances import agent, kernel
from allranks.local.instances.instance import find
from allranks.local.instances.process_log import ProcessLog
from allranks.local.instances.processes import end_descendants, end_orphans

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

    Messages in both directions are JSON objects. Those to `lend` a fork server are empty and come with the descriptors
    of its connection and its namespaces. The others of the supervisor ask for an agent: they have the isolation and the
    index of its instance, and the names of the descriptors that they come with. Ours are `ready`, `unfit` with the
    reason, `forked` and `failed` with the index, and `ended` with the process id and the status of an agent.
    """
    preloaded = preload(modules, spared=(connection.fileno(),))
    if preloaded.unfit:
        _send(connection, event="unfit", reason=preloaded.unfit)
        return
    flight_recorder.install()
    fork_until_end(connection, preloaded)


def fork_until_end(connection: socket.socket, preloaded: Preloaded, *, lent: bool = False) -> None:
    """Fork agents, or fork servers for other supervisors, until the other end of the connection is closed.

    lent: whether this process, and not the supervisor, adopts what killed agents leave behind
    """
    agents: set[int] = set()
    wake = agent.wake_on_exit()
    _send(connection, event="ready")
    while True:
        ready, _, _ = select.select([connection.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _report_ended(connection, agents, lent=lent)
        if connection.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(connection, MESSAGE, DESCRIPTORS)
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            if not data:
                return
            request = json.loads(data)
            if "lend" in request:
                _lend(connection, descriptors, preloaded)
            else:
                agents.add(_fork(connection, request, descriptors, preloaded))


def _fork(connection: socket.socket, request: dict[str, Any], descriptors: list[int], preloaded: Preloaded) -> int:
    """Fork an agent. Return its process id, or 0 if that fails."""
    shared = dict(zip(request["descriptors"], descriptors, strict=True))
    isolation = find(request["isolation"]).agent(shared.get("network"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns where a library has started threads
            pid = isolation.fork()
    except OSError as error:
        _send(connection, event="failed", index=request["index"], reason=str(error))
        return 0
    else:
        if not pid:
            connection.close()
            log = ProcessLog(f"agent {request['index']}", descriptor=shared.get("log", -1))
            agent.run(isolation, shared["control"], shared["events"], partial(rank.start, preloaded=preloaded), log)
        _send(connection, event="forked", index=request["index"], pid=pid)
        return pid
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _report_ended(connection: socket.socket, agents: set[int], *, lent: bool) -> None:
    """Reap the agents that have ended."""
    for pid, status, _ in agent.ended_children():
        agents.discard(pid)
        if status and lent:
            end_orphans(agents)
        _send(connection, event="ended", pid=pid, status=status)


def _send(connection: socket.socket, **message: Any) -> None:
    connection.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)


def _lend(connection: socket.socket, descriptors: Sequence[int], preloaded: Preloaded) -> None:
    """Fork a fork server for another supervisor.

    connection:  of this process
    descriptors: the connection of the new fork server, and the namespaces of its supervisor
    """
    theirs, *namespaces = descriptors
    with warnings.catch_warnings(), contextlib.suppress(OSError):  # then the supervisor does without it
        warnings.simplefilter("ignore")  # Python 3.12 warns where a library has started threads
        if not os.fork():
            connection.close()
            _wait_for_lent(theirs, namespaces, preloaded)
    for descriptor in descriptors:
        os.close(descriptor)


def _wait_for_lent(connection: int, namespaces: Sequence[int], preloaded: Preloaded) -> NoReturn:
    """Enter the namespaces, fork the server in them, and reap it: only its parent, outside its PID namespace, can."""
    try:
        signal.set_wakeup_fd(-1)
        # Without namespaces, it adopts what a killed fork server leaves behind.
        kernel.become_subreaper()
        is_inside = _enter(namespaces)
        pid = os.fork()
        if not pid:
            _serve_lent(connection, preloaded)
        os.waitpid(pid, 0)
        if not is_inside:
            end_descendants()
    finally:
        os._exit(0)  # its supervisor now sees the end of the connection


def _serve_lent(connection: int, preloaded: Preloaded) -> NoReturn:
    try:
        kernel.become_subreaper()
        os.chdir("/")
        fork_until_end(socket.socket(fileno=connection), preloaded, lent=True)
    finally:
        try:
            end_descendants()
        finally:
            os._exit(0)


def _enter(namespaces: Sequence[int]) -> bool:
    """Enter the namespaces that are not those of this process. Return whether there were any. Raise OSError if that is
    not permitted."""
    others = [
        (kind, descriptor)
        for (name, kind), descriptor in zip(kernel.NAMESPACES.items(), namespaces, strict=True)
        if os.readlink(f"/proc/self/fd/{descriptor}") != os.readlink(f"/proc/self/ns/{name}")
    ]
    for kind, descriptor in others:
        kernel.setns(descriptor, kind)
    for descriptor in namespaces:
        os.close(descriptor)
    return bool(others)
