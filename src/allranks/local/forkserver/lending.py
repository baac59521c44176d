"""Lend a starter to a supervisor: a fork of this process in the supervisor's namespaces."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import warnings
from collections.abc import Callable, Sequence
from typing import NoReturn

from allranks.local.instances import kernel
from allranks.local.instances.agent.borrowing import NAMESPACES
from allranks.local.instances.agent.descendants import end_descendants

_KINDS = {"user": kernel.NEWUSER, "mnt": kernel.NEWNS, "net": kernel.NEWNET, "pid": kernel.NEWPID}


def lend(connection: socket.socket, descriptors: Sequence[int], serve: Callable[[socket.socket], None]) -> None:
    """Fork a starter, whose parent waits for its end: the parent in another PID namespace must reap it.

    connection:  of this process
    descriptors: the connection of the starter, and the namespaces of its supervisor
    serve:       what the starter does with its connection
    """
    theirs, *namespaces = descriptors
    with warnings.catch_warnings(), contextlib.suppress(OSError):  # then the supervisor does without it
        warnings.simplefilter("ignore")  # Python 3.12 warns where a library has started threads
        if not os.fork():
            _lend(connection, theirs, namespaces, serve)
    for descriptor in descriptors:
        os.close(descriptor)


def _lend(
    connection: socket.socket, theirs: int, namespaces: Sequence[int], serve: Callable[[socket.socket], None]
) -> NoReturn:
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


def _be_lent(connection: int, serve: Callable[[socket.socket], None]) -> NoReturn:
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
