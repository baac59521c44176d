"""The rsh server of an emulated instance, like sshd on a real one: run the commands that `rsh.client` sends.

It listens on a Unix socket in a folder that every instance sees and only this user may enter. It does not depend on the
instances' network.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket


def main(path: str) -> None:
    """Serve until this process is killed. The agent of the instance ends the commands."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the child processes
    folder, name = os.path.split(path)
    os.chdir(folder)  # the path of a socket may have 108 characters; a run's folder has more
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        while True:
            client, _ = listener.accept()
            if os.fork():
                client.close()
                continue
            listener.close()
            os._exit(_serve(client))


def _serve(client: socket.socket) -> int:
    """Run one command with the client's stdin, stdout and stderr, and send it the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command, descriptors, _, _ = socket.recv_fds(client, 1 << 17, 3)
    pid = os.fork()
    if not pid:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.chdir("/")
        os.execv("/bin/sh", ["sh", "-c", command.decode()])
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):  # the client may have exited
        client.sendall(bytes([code if code >= 0 else 128 - code]))
    return 0
