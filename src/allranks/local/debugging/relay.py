"""A process that forwards connections from a port of this machine to one within the network of an instance.

A socket stays in the network in which it was made: the process gets a listener of this machine, then enters the network
of the instance, and connects there.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading

from allranks.local.instances import kernel

LOCAL = "127.0.0.1"


def main(listener: str, network: str, port: str) -> None:
    """Forward connections until the engine ends.

    listener: the descriptor of a socket that listens on this machine
    network:  the inode of the instance's network
    port:     on the loopback interface of that network
    """
    kernel.die_with_parent()
    enter(int(network))
    with socket.socket(fileno=int(listener)) as accepting:
        while True:
            client, _ = accepting.accept()
            try:
                server = socket.create_connection((LOCAL, int(port)))
            except OSError:
                client.close()
                continue
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def enter(network: int) -> None:
    """Enter the network with this inode, by a process in it. Raise OSError if there is none."""
    if os.stat("/proc/self/ns/net").st_ino == network:
        return
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if os.stat(f"/proc/{name}/ns/net").st_ino != network:
                continue
            user, net = (os.open(f"/proc/{name}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net"))
            if os.stat(user).st_ino != os.stat("/proc/self/ns/user").st_ino:
                kernel.setns(user, kernel.NEWUSER)
            kernel.setns(net, kernel.NEWNET)
            return
    raise ProcessLookupError(f"no process is in the network {network}")


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)
