"""Names of instances in /etc/hosts, by which programs find an address's name as well as a name's address.

A server that accepts IPv4 and IPv6 sees an IPv4 client by its IPv4-mapped address, ``::ffff:10.77.0.10``. glibc finds
the name of such an address only in a line of its own. Without one it asks a name server, which an instance of the rack
cannot reach, and torch then writes "[c10d] The hostname of the client socket cannot be retrieved" into every log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from allranks.local.instances import kernel

FILE = "/etc/hosts"


def text(hosts: Iterable[Sequence[str]], mapped_suffix: str = "") -> str:
    """Return the lines for hosts, which are pairs (address, name).

    mapped_suffix: appended to the name of the mapped address. Where names are not addresses, the names must differ, or
                   a look-up of the name would also return the mapped address.
    """
    return "".join(f"{address} {name}\n::ffff:{address} {name}{mapped_suffix}\n" for address, name in hosts)


def bind(content: str, folder: str, target: str = FILE) -> None:
    """Let a file with this content take the place of the target, in this process's mount namespace.

    folder: for the file, which has no name afterwards. Raise OSError on failure.
    """
    source = f"{folder}/.{os.path.basename(target)}-{os.getpid()}"
    try:
        with open(source, "x", encoding="utf-8") as file:
            file.write(content)
        kernel.mount(source, target, flags=kernel.MS_BIND)
    finally:
        if os.path.exists(source):
            os.unlink(source)
