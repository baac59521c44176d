"""Borrow a starter from `allranks warm`: a fork of a process that has imported the modules before the run began."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

NAMESPACES = ("user", "mnt", "net", "pid")
"""Namespaces of a supervisor, in the order in which a starter enters them."""

ANSWER_SECONDS = 2.0
"""Time limit for an answer, after which the supervisor starts a process of its own."""


def borrow(warm: str, spec: Mapping[str, Any], connection: int) -> bool:
    """Ask for a starter in the namespaces of this process. Return whether there will be one.

    warm:       the path of the socket, of any length
    spec:       as of `programs.StarterSpec`
    connection: the descriptor of the starter's end of its connection
    """
    try:
        with contextlib.ExitStack() as stack:
            descriptors = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
            server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            server.settimeout(ANSWER_SECONDS)
            folder = os.open(os.path.dirname(warm), os.O_PATH)
            stack.callback(os.close, folder)
            # The path of a socket may have 107 characters.
            server.connect(f"/proc/self/fd/{folder}/{os.path.basename(warm)}")
            socket.send_fds(server, [json.dumps(dict(spec)).encode()], [connection, *descriptors])
            return server.recv(1) == b"1"
    except OSError:
        return False
