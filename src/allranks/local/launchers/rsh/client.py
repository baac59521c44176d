"""The rsh client: run a command on an emulated instance, like `ssh HOST COMMAND...`. mpirun calls it for every instance
except the first."""

from __future__ import annotations

import os
import socket
import sys
import time

PATIENCE = 30.0
"""Seconds until a server must accept connections. All instances of a step start at about the same time."""


def socket_name(host: str) -> str:
    """Return the file name of a host's socket."""
    return f"{host}.sock"


def main(folder: str, host: str, *command: str) -> None:
    """Run the command and exit with its exit code. Exit with 255, as ssh does, if the instance cannot be reached.

    folder: of the sockets of the servers
    """
    os.chdir(folder)
    end = time.monotonic() + PATIENCE
    while True:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(socket_name(host))
            break
        except (FileNotFoundError, ConnectionRefusedError) as error:
            server.close()
            if time.monotonic() > end:
                print(f"{host} is not an instance of this step, or did not start: {error}", file=sys.stderr)
                os._exit(255)
            time.sleep(0.01)
    # Like ssh: one line, which the shell of the server parses, including its quotes.
    socket.send_fds(server, [" ".join(command).encode()], [0, 1, 2])
    answer = server.recv(1)
    os._exit(answer[0] if answer else 255)
