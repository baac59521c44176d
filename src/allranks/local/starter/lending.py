"""Lend a starter to a supervisor: a fork of this process in the supervisor's namespaces."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence

from allranks.local.instances import kernel
from allranks.local.instances.agent.borrowing import NAMESPACES
from allranks.local.instances.agent.descendants import descendants, end_descendants

_KINDS = {"user": kernel.NEWUSER, "mnt": kernel.NEWNS, "net": kernel.NEWNET, "pid": kernel.NEWPID}

_is_lent = False
"""Whether this process was lent."""


def lend(connection: socket.socket, descriptors: Sequence[int], serve: Callable[[socket.socket], None]) -> None:
    """Fork a starter, whose parent waits for its end: the parent in another PID namespace must reap it.

    connection:  of this process
    descriptors: the connection of the starter, and the namespaces of its supervisor
    serve:       what the starter does with its connection
    """
    theirs, *namespaces = descriptors
    pid = os.fork()
    if not pid:
        try:
            signal.set_wakeup_fd(-1)
            connection.close()
            # Without namespaces, it adopts what a killed starter leaves behind.
            kernel.become_subreaper()
            is_inside = _enter(namespaces)
            starter = os.fork()
            if not starter:
                _be_lent(theirs, serve)
            os.waitpid(starter, 0)
            if not is_inside:
                end_descendants()
        finally:
            os._exit(0)  # its supervisor now sees the end of the connection
    for descriptor in descriptors:
        os.close(descriptor)


def end_adopted() -> None:
    """Kill the processes that a killed agent has left behind, if this process has adopted them."""
    if not _is_lent:
        return
    for pid in descendants(os.getpid()):
        try:
            if not os.path.exists(f"/proc/{pid}") or os.getsid(pid) == os.getsid(0):
                continue  # an agent, in the session of its starter
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _be_lent(connection: int, serve: Callable[[socket.socket], None]) -> None:
    global _is_lent
    _is_lent = True
    try:
        kernel.become_subreaper()
        os.chdir("/")
        serve(socket.socket(fileno=connection))
    finally:
        try:
            end_descendants()
        finally:
            os._exit(0)


def _enter(namespaces: Sequence[int]) -> bool:
    """Enter the namespaces that are not those of this process. Return whether there were any. Raise OSError if that is
    not permitted."""
    others = [
        (name, descriptor)
        for name, descriptor in zip(NAMESPACES, namespaces, strict=True)
        if os.readlink(f"/proc/self/fd/{descriptor}") != os.readlink(f"/proc/self/ns/{name}")
    ]
    for name, descriptor in others:
        kernel.setns(descriptor, _KINDS[name])
    for descriptor in namespaces:
        os.close(descriptor)
    return bool(others)
