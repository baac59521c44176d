"""The starter's process: import modules, then fork an agent whenever the supervisor asks for one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import warnings
from functools import partial
from typing import Any, NoReturn

from allranks.local.forkserver import rank
from allranks.local.forkserver.lending import lend
from allranks.local.forkserver.preloaded import Preloaded, preload
from allranks.local.instances import kernel
from allranks.local.instances.agent import agent_process
from allranks.local.instances.agent.agent import wake_on_exit
from allranks.local.instances.agent.descendants import end_orphans
from allranks.local.instances.agent.isolation import find

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
    """Import the modules, say whether agents can be forked, and fork them until the supervisor closes the connection.

    Messages in both directions are JSON objects. Those to `lend` a starter are empty and come with the descriptors of
    its connection and its namespaces. The others of the supervisor name the number, the isolation and the index of the
    instance, and come with descriptors. Ours are `ready`, `unfit` with the reason, `forked` with the number and the
    process id, and `ended` with the process id and the status of an agent.
    """
    preloaded = preload(modules, spared=(connection.fileno(),))
    if preloaded.unfit:
        _send(connection, event="unfit", reason=preloaded.unfit)
        return
    fork_until_end(connection, preloaded)


def fork_until_end(connection: socket.socket, preloaded: Preloaded, *, lent: bool = False) -> None:
    """Fork agents, or starters for other supervisors, until the other end of the connection is closed.

    lent: whether this process, and not the supervisor, adopts what killed agents leave behind
    """
    agents: set[int] = set()
    wake = wake_on_exit()
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
                lend(connection, descriptors, partial(fork_until_end, preloaded=preloaded, lent=True))
            else:
                agents.add(_fork(connection, request, descriptors, preloaded))


def _fork(connection: socket.socket, request: dict[str, Any], descriptors: list[int], preloaded: Preloaded) -> int:
    """Fork an agent. Return its process id, or 0 if that fails."""
    control, events, *network = descriptors
    isolation = find(request["isolation"]).agent(network[0] if network else None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns where a library has started threads
            pid = isolation.fork()
    except OSError as error:
        _send(connection, event="failed", number=request["number"], reason=str(error))
        return 0
    else:
        if not pid:
            connection.close()
            agent_process.run(isolation, control, events, partial(rank.start, preloaded=preloaded))
        _send(connection, event="forked", number=request["number"], pid=pid)
        return pid
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _report_ended(connection: socket.socket, agents: set[int], *, lent: bool) -> None:
    """Reap the agents that have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            agents.discard(pid)
            if status and lent:
                end_orphans(agents)
            _send(connection, event="ended", pid=pid, status=status)


def _send(connection: socket.socket, **message: Any) -> None:
    connection.send(json.dumps(message).encode(), socket.MSG_NOSIGNAL)
