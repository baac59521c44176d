"""The way into an emulated instance, as sshd is into a real one: runs what `rsh.client` brings.

It listens on a Unix socket in a folder that every instance sees and only this user may enter. A network does not matter
to it, so a launcher reaches an instance whose link is down as little or as much as its own protocol does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket


def main(path: str) -> None:
    """Serve until it is ended. What it started is ended by the agent of its instance."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    folder, name = os.path.split(path)
    os.chdir(folder)  # a socket's path may have 108 characters, a run's folder has more
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        while True:
            visitor, _ = listening.accept()
            if os.fork():
                visitor.close()
                continue
            listening.close()
            os._exit(_serve(visitor))


def _serve(visitor: socket.socket) -> int:
    """Run one command with the visitor's own stdin, stdout and stderr, and tells it the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command, descriptors, _, _ = socket.recv_fds(visitor, 1 << 17, 3)
    pid = os.fork()
    if not pid:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.chdir("/")
        os.execv("/bin/sh", ["sh", "-c", command.decode()])
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):  # who has knocked may be gone
        visitor.sendall(bytes([code if code >= 0 else 128 - code]))
    return 0
