"""The network of this machine: the interface that leads to another machine, and its RDMA devices.

Which devices are InfiniBand is found at run time: the first device of a size is mlx5_0 on one instance and mlx5_ib0 on
another (azhpc-images#491, az-hop#394), and mlx5_an0 is Azure's accelerated networking, which is Ethernet
(azhpc-images#213).
"""

import fcntl
import ipaddress
import re
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "lo"

_SIOCGIFADDR = 0x8915  # linux/sockios.h: an interface's IPv4 address


def interface_towards(host: str) -> str | None:
    """Return the interface by which this machine reaches `host`, a name or an IPv4 address. No packet is sent.

    If the address is this machine's own, return its interface; "lo" for 127.0.0.0/8. Return None if the host's address
    is unknown or no route leads to it: the library then chooses an interface.
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


SYSFS = Path("/sys/class/infiniband")
"""The folder in which Linux lists RDMA devices (Documentation/ABI/stable/sysfs-class-infiniband)."""

_ACCELERATED = "mlx5_an"


@dataclass(frozen=True)
class Device:
    """One port of an RDMA device.

    name:       the kernel's name: mlx5_ib0
    port:       its number, from 1
    link_layer: InfiniBand or Ethernet; "" if the kernel does not report it
    gbit_s:     its rate in Gbit/s; None if the kernel does not report it
    state:      DOWN, INIT, ARMED or ACTIVE; "" if the kernel does not report it
    """

    name: str
    port: int = 1
    link_layer: str = "InfiniBand"
    gbit_s: float | None = None
    state: str = "ACTIVE"

    @property
    def is_infiniband(self) -> bool:
        """Whether this is InfiniBand, not Ethernet with RDMA."""
        return self.link_layer == "InfiniBand" and not self.is_accelerated_networking

    @property
    def is_accelerated_networking(self) -> bool:
        """Whether this is Azure's accelerated networking, by the device's name in Azure's images."""
        return self.name.startswith(_ACCELERATED)

    def __str__(self) -> str:
        """Return the device and port as NCCL and UCX write them: mlx5_ib0:1."""
        return f"{self.name}:{self.port}"


def devices(sysfs: Path = SYSFS) -> tuple[Device, ...]:
    """Return every port of every RDMA device, mlx5_ib2 before mlx5_ib10; nothing if the folder does not exist.

    Unreadable files count as missing: a device may be removed while it is read.
    """
    ports = []
    for device in _entries(sysfs):
        for port in _entries(device / "ports"):
            if port.name.isdecimal():
                ports.append(_device(device.name, port))
    return tuple(sorted(ports, key=lambda device: (_natural(device.name), device.port)))


def usable(found: Iterable[Device]) -> tuple[Device, ...]:
    """Return the InfiniBand ports that are up, with an address of the subnet manager: those that NCCL can use."""
    return tuple(device for device in found if device.is_infiniband and device.state == "ACTIVE")


def _device(name: str, port: Path) -> Device:
    # "4: ACTIVE", "200 Gb/sec (4X HDR)"
    state = text(port / "state").rpartition(":")[2].strip()
    rate = re.match(r"[\d.]+(?= Gb/sec)", text(port / "rate"))
    return Device(name, int(port.name), text(port / "link_layer"), float(rate[0]) if rate else None, state)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def text(file: Path) -> str:
    """Return the text of a file in /sys; "" if it cannot be read."""
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _natural(name: str) -> list[tuple[bool, int, str]]:
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", name)]
