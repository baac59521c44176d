"""Faults of the rack: links between instances that delay, lose or limit frames, and full disks.

The supervisor of a run executes this file, without the packages of this environment.
"""

import contextlib
import heapq
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from allranks.local.instances import kernel, rack

_FRAME = 1 << 17
_QUEUE = 0.2
"""Seconds that a frame may wait for a link with a limited rate. Later ones are dropped."""

_PACKET = 263, 15, 23
"""SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING. With the header, frames whose checksum the sender left to its
interface are complete for the receiver."""


_copying: dict[int, int] = {}
"""The process that copies the frames of an instance's link, by the number of the instance's port."""


def inject(index: int, pid: int, *, kind: str, folders: Sequence[str] = (), **link: float) -> None:
    """Inject a fault into an instance. Raise OSError on failure.

    index:   the instance's number in the run
    pid:     the process id of its agent
    kind:    disk-full (of the folders), or link
    link:    arguments of `change_link`
    """
    if kind == "disk-full":
        fill_disk(pid, folders)
    else:
        change_link(index, **link)


def change_link(port: int, *, delay: float, loss: float, rate: float) -> None:
    """Change the outgoing link of an instance. A process copies the frames of a link with a fault. No queue of the
    kernel is used, because netem is missing in many kernels. Raise OSError on failure.

    port:  the number of its port
    delay: the delay in seconds
    loss:  share of the frames that are lost; 1: all incoming frames are lost too
    rate:  bits per second; 0: no limit
    """
    near, far = f"near{port}", f"far{port}"
    if before := _copying.pop(port, 0):
        os.kill(before, signal.SIGKILL)
        os.waitpid(before, 0)
    elif delay or loss or rate:
        rack.ip(
            f"link add {near} type veth peer name {far}",
            f"link set {near} up",
            f"link set {far} master {rack.BRIDGE} up",
            f"link set rack{port} nomaster",
        )
    if delay or loss or rate:
        ends = [_open(f"rack{port}"), _open(near)]
        _copying[port] = os.fork()
        if not _copying[port]:
            _copy(ends, delay, loss, rate)
        for end in ends:
            end.close()
    elif before:
        rack.ip(f"link del {near}", f"link set rack{port} master {rack.BRIDGE}")


def _open(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    for name in _PACKET[1:]:
        end.setsockopt(_PACKET[0], name, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    end.bind((interface, 3))  # ETH_P_ALL
    end.setblocking(False)
    return end


def _copy(ends: Sequence[socket.socket], delay: float, loss: float, rate: float) -> NoReturn:
    """Copy the frames of the instance to the bridge with the faults of its link, and those of the bridge unchanged."""
    try:
        kernel.die_with_parent()
        instance, bridge = ends
        first, last = sorted(end.fileno() for end in ends)
        for low, high in ((0, first), (first + 1, last), (last + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(low, high)
        poll = select.poll()
        for end in ends:
            poll.register(end, select.POLLIN)
        sent: list[tuple[float, int, bytes]] = []
        number, free = 0, 0.0
        while True:
            pause = max(sent[0][0] - time.monotonic(), 0.0) * 1000 if sent else None
            for descriptor, _ in poll.poll(pause):
                with contextlib.suppress(OSError):  # it has no more frames, or the instance is gone
                    while descriptor == bridge.fileno() and (frame := bridge.recv(_FRAME)):
                        if loss < 1:
                            instance.send(frame)
                    while descriptor == instance.fileno() and (frame := instance.recv(_FRAME)):
                        now = time.monotonic()
                        size = int.from_bytes(frame[4:6], sys.byteorder)  # of the parts of a frame that is sent as one
                        parts = len(frame) // size + 1 if size else 1
                        if random.random() > (1 - loss) ** parts or free > now + _QUEUE:
                            continue
                        free = max(free, now) + (len(frame) * 8 / rate if rate else 0)
                        heapq.heappush(sent, (free + delay, number := number + 1, frame))
            while sent and sent[0][0] <= time.monotonic():
                with contextlib.suppress(OSError):
                    bridge.send(heapq.heappop(sent)[2])
    finally:
        os._exit(1)


def fill_disk(pid: int, folders: Sequence[str]) -> None:
    """Make folders on the instance of an agent full. Their content stays readable.

    Raise OSError if the agent has ended, or its kernel has no overlays.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            _fill(pid, folders)
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as answer:
        failure = answer.read()
    os.waitpid(child, 0)
    if failure:
        raise OSError(failure)


def _fill(pid: int, folders: Sequence[str]) -> None:
    root = os.open(f"/proc/{pid}/root", os.O_PATH)
    kernel.setns(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), kernel.NEWNS)
    os.fchdir(root)  # of its container, if it has one
    os.chroot(".")
    disk = "/tmp/.full-disk"
    os.mkdir(disk)
    kernel.mount("tmpfs", disk, "tmpfs", options="size=64k")
    for number, folder in enumerate(folders):
        upper, work = f"{disk}/{number}", f"{disk}/{number}.work"
        os.mkdir(upper)
        os.mkdir(work)
        kernel.mount(
            "overlay", folder, "overlay", options=f"lowerdir={folder},upperdir={upper},workdir={work},userxattr"
        )
    with contextlib.suppress(OSError), open(f"{disk}/data", "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            continue
