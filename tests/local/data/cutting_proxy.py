"""A proxy on loopback that cuts connections off at random places, from a seed."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bounded


@dataclass
class Proxy:
    """port: where it listens. cuts: how many connections it has cut off"""

    port: int
    cuts: int = 0


@contextmanager
def cutting(port: int, *, seed: int = 1, longest: int = 3_000_000) -> Iterator[Proxy]:
    """Pass on what a server on loopback sends, up to a random number of bytes of each connection.

    longest: the largest of these numbers
    """
    places = random.Random(seed)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(listener.getsockname()[1])

        def copy(source: socket.socket, target: socket.socket, most: int | None = None) -> None:
            with contextlib.suppress(OSError):
                while block := source.recv(1 << 16):
                    if most is not None and (most := most - len(block)) < 0:
                        proxy.cuts += 1
                        break
                    target.sendall(block)
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

        def serve() -> None:
            with contextlib.suppress(OSError), contextlib.ExitStack() as connections:
                while True:
                    ours = connections.enter_context(listener.accept()[0])
                    theirs = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
                    ways = ((ours, theirs, None), (theirs, ours, places.randrange(1, longest)))
                    for way in ways:
                        threading.Thread(target=copy, args=way, daemon=True).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            bounded.join(thread)
