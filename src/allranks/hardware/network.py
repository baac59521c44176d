"""Find the network interface of this machine that leads to another one."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct

LOOPBACK = "lo"

_SIOCGIFADDR = 0x8915  # linux/sockios.h: an interface's IPv4 address


def interface_towards(host: str) -> str | None:
    """Return the interface by which this machine reaches `host`, a name or an IPv4 address. No packet is sent.

    If the address is this machine's own, return the interface that carries it; "lo" for 127.0.0.0/8. Return None if
    the host's address is unknown or no route leads to it: the library then chooses one.
    """
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return None
    if ipaddress.ip_address(address).is_loopback:
        return LOOPBACK
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # connecting a datagram socket asks the routing table and sends nothing
        except OSError:
            return None
        source = probe.getsockname()[0]
        return next((name for _, name in socket.if_nameindex() if _address(probe, name) == source), None)


def _address(any_socket: socket.socket, interface: str) -> str | None:
    request = struct.pack("256s", interface.encode()[:15])
    try:
        answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
    except OSError:
        return None
    return socket.inet_ntoa(answer[20:24])
