"""Messages on a connection: a length, and as many bytes."""

from __future__ import annotations

import io
import socket
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH = struct.Struct("!Q")


def send(connection: socket.socket, payload: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(payload)))
    connection.sendall(payload)


def receive(connection: socket.socket, limit: int | None = None) -> bytes:
    """Return the next message. Raise ConnectionError if the connection ends before, or the message is longer than
    `limit` bytes."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if limit is not None and length > limit:
        raise ConnectionError(f"a message of {length} bytes is too long")
    return _exactly(connection, length)


def encode_array(array: NDArray[Any]) -> bytes:
    """Encode an array in NumPy's format. Unlike a pickle, it cannot make its reader run code."""
    import numpy as np

    file = io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return file.getvalue()


def decode_array(payload: bytes) -> NDArray[Any]:
    import numpy as np

    return np.lib.format.read_array(io.BytesIO(payload), allow_pickle=False)


def _exactly(connection: socket.socket, length: int) -> bytes:
    buffer = bytearray(length)
    view, start = memoryview(buffer), 0
    while start < length:
        count = connection.recv_into(view[start:])
        if not count:
            raise ConnectionError("the connection has ended")
        start += count
    return bytes(buffer)
