"""Machines that are namespaces: each has its own network and address, hostname, process space, /tmp, /dev/shm, /sys and
/etc/hosts.

Works for an ordinary user wherever unprivileged user namespaces do, and for root also without them. The addresses are
private to the rack: two racks side by side use the same ones and never meet.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from allranks.local.instances import kernel

BRIDGE = "rack"
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin")
"""Where `ip` lives; an ordinary user's PATH often leaves the sbin folders out."""

KEPT_MOUNT_FLAGS = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048}
"""statvfs(3) flag -> mount(2) flag. Inside a user namespace a bind mount must keep those of its source, or the kernel
refuses it."""


class RackMachines:
    """A bridge, and on it as many machines as were ever asked for; a machine's network stays for the run, like a warm
    cluster's."""

    def __init__(self) -> None:
        _enter_own_namespaces()
        self.processes = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self.network = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.networks: dict[int, int] = {}
        _ip("link set lo up", f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up")

    def fork(self, index: int, address: str) -> int:
        if index not in self.networks:
            self.networks[index] = self._connect(f"rack{index}", address)
        # The keeper is the first of a new process space: when it ends, however it ends, the kernel kills everybody in
        # there.
        kernel.unshare(kernel.NEWPID)
        try:
            pid = os.fork()
        except OSError:
            kernel.setns(self.processes, kernel.NEWPID)
            raise
        if pid:
            kernel.setns(self.processes, kernel.NEWPID)
        return pid

    def prepare(self, index: int) -> None:
        kernel.die_with_parent()
        kernel.setns(self.networks[index], kernel.NEWNET)
        kernel.unshare(kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC)
        kernel.mount("proc", "/proc", "proc")
        with contextlib.suppress(OSError):
            kernel.mount(
                "sysfs", "/sys", "sysfs"
            )  # refused in some containers; then the host's interfaces show in /sys

    def enter(self, machine: dict[str, Any]) -> None:
        kernel.set_hostname(machine["hostname"])
        _own_tmp(machine["temporary"], machine["keep"])
        if os.path.isdir("/dev/shm"):
            kernel.mount("tmpfs", "/dev/shm", "tmpfs", options=f"mode=1777,size={machine['shm_size']}")
        _own_hosts(machine["hosts"])
        for source, target in machine["read_only"]:
            _bind_read_only(source, target)

    def _connect(self, port: str, address: str) -> int:
        """Return a new network with one interface, eth0, that the bridge leads to. Return the descriptor that keeps it
        alive."""
        kernel.unshare(kernel.NEWNET)
        network = os.open("/proc/self/ns/net", os.O_RDONLY)
        kernel.setns(self.network, kernel.NEWNET)
        _ip(
            f"link add {port} type veth peer name eth0 netns /proc/self/fd/{network}",
            f"link set {port} master {BRIDGE}",
            f"link set {port} up",
            inherit=(network,),
        )
        kernel.setns(network, kernel.NEWNET)
        try:
            with contextlib.suppress(OSError):
                # Otherwise every address is first looked for on the network, for a second or two.
                _write("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1")
            _ip("link set lo up", f"addr add {address}/16 dev eth0", "link set eth0 up")
        finally:
            kernel.setns(self.network, kernel.NEWNET)
        return network


def _enter_own_namespaces() -> None:
    """Move on, as a child, into namespaces in which this user may mount and connect; the parent only waits for it."""
    ours = kernel.NEWNS | kernel.NEWNET | kernel.NEWPID
    try:
        if os.geteuid() != 0:
            raise PermissionError
        kernel.unshare(ours)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | ours)
        kernel.map_identity(0, user, 0, group)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent()
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc")


def _ip(*commands: str, inherit: tuple[int, ...] = ()) -> None:
    """Has `ip` carry out commands. inherit: descriptors that it is to find open. Raise OSError with its complaint."""
    program = next((path for folder in SYSTEM_FOLDERS if os.access(path := f"{folder}/ip", os.X_OK)), None)
    if program is None:
        raise FileNotFoundError("the program `ip` is missing (package iproute2)")
    for descriptor in inherit:
        os.set_inheritable(descriptor, True)
    orders, order = os.pipe()
    _write(order, "\n".join(commands))  # a pipe holds far more than these few lines
    complaints, complaint = os.pipe()
    ends = [(os.POSIX_SPAWN_DUP2, orders, 0), (os.POSIX_SPAWN_DUP2, complaint, 1), (os.POSIX_SPAWN_DUP2, complaint, 2)]
    pid = os.posix_spawn(program, [program, "-batch", "-"], os.environ, file_actions=ends)
    os.close(orders)
    os.close(complaint)
    with open(complaints, encoding="utf-8", errors="replace") as file:
        said = file.read().strip()
    _, status = os.waitpid(pid, 0)
    for descriptor in inherit:
        os.set_inheritable(descriptor, False)
    if status != 0:
        raise OSError(f"ip: {said}")


def _write(path: str | int, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _own_tmp(folder: str, keep: list[str]) -> None:
    """Make the folder the machine's /tmp, in which only the folders that the run itself needs are where they were.

    It lies on disk: data that a step stages there would fill memory otherwise.
    """
    below = sorted({path for path in map(os.path.realpath, keep) if path == "/tmp" or path.startswith("/tmp/")})
    if "/tmp" in below:
        return
    kept: list[tuple[str, int]] = []
    for path in below:
        if not kept or not path.startswith(kept[-1][0] + "/"):
            kept.append((path, os.open(path, os.O_PATH)))
    kernel.mount(folder, "/tmp", flags=kernel.MS_BIND)
    for path, descriptor in kept:
        source = f"/proc/self/fd/{descriptor}"
        if os.path.isdir(source):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _write(path, "")
        kernel.mount(source, path, flags=kernel.MS_BIND | kernel.MS_REC)
        os.close(descriptor)


def _own_hosts(hosts: list[list[str]]) -> None:
    if not os.path.exists("/etc/hosts"):
        return
    lines = ["127.0.0.1 localhost", "::1 localhost", *(" ".join(host) for host in hosts)]
    file = "/tmp/.hosts"
    _write(file, "\n".join(lines) + "\n")
    kernel.mount(file, "/etc/hosts", flags=kernel.MS_BIND)
    os.unlink(file)


def _bind_read_only(source: str, target: str) -> None:
    kernel.mount(source, target, flags=kernel.MS_BIND | kernel.MS_REC)
    present = os.statvfs(target).f_flag
    kept = sum(mount for flag, mount in KEPT_MOUNT_FLAGS.items() if present & flag)
    kernel.mount("none", target, flags=kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | kept)
