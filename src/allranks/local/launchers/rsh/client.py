"""Runs a command on an emulated instance, as `ssh HOST COMMAND...` does: what mpirun calls for each other instance."""

from __future__ import annotations

import os
import socket
import sys
import time

PATIENCE = 30.0
"""Seconds until a door must be open: all instances of a step start at about the same time."""


def socket_name(host: str) -> str:
    """Return the name of a host's socket in the folder of the doors."""
    return f"{host}.door"


def main(folder: str, host: str, *command: str) -> None:
    """End with the command's exit code, or with 255, as ssh does, where the instance cannot be reached.

    folder: where the sockets of the doors are
    """
    os.chdir(folder)
    end = time.monotonic() + PATIENCE
    while True:
        door = socket.socket(socket.AF_UNIX)
        try:
            door.connect(socket_name(host))
            break
        except (FileNotFoundError, ConnectionRefusedError) as error:
            door.close()
            if time.monotonic() > end:
                print(f"{host} is no instance of this step, or did not start: {error}", file=sys.stderr)
                os._exit(255)
            time.sleep(0.01)
    # Like ssh: one line for the shell over there, which is what quotes in it are meant for.
    socket.send_fds(door, [" ".join(command).encode()], [0, 1, 2])
    answer = door.recv(1)
    os._exit(answer[0] if answer else 255)
