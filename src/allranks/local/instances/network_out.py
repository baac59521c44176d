"""Outbound network access of instances: as nodes of Azure ML, they can reach the network of this machine, but not the
services that run on it.

pasta (package passt) copies between a device in an instance's network and sockets of this machine, as an ordinary user.
The device has no address: outgoing packets have the instance's own, and ranks see one interface only. Each pasta is
started outside of the rack's namespaces, by a process that was forked before they were entered. It ends with the rack.
"""

import contextlib
import itertools
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import partial

from allranks.local.instances import kernel

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
"""Folders that may contain `ip` and `pasta`. An ordinary user's PATH often lacks the sbin folders."""

_DEVICE = "out0"
_NAMES = "169.254.1.53"
"""The address of the name server for instances. pasta forwards to this machine's own, which may be local."""

_PENDING = "unreachable default metric 9999"
"""The route of an instance whose pasta is starting."""

_SECONDS = 2.0
"""Seconds for pasta to start. It takes 30 ms."""

Ip = Callable[..., None]
"""Runs commands of `ip` in the network of this process."""


def program(name: str) -> str | None:
    """Return the path of a program of the system; None if it is not installed."""
    return next((path for folder in SYSTEM_FOLDERS if os.access(path := f"{folder}/{name}", os.X_OK)), None)


def usable() -> str | None:
    """Return the path of pasta; None if it is not installed, this user may not make devices, or this machine has no
    default route."""
    has_route = any(line.split()[1:2] == ["00000000"] for line in _lines("/proc/net/route"))
    return program("pasta") if has_route and os.access("/dev/net/tun", os.R_OK | os.W_OK) else None


class NetworkOut:
    """The supervisor's end of the process that starts pastas. It must be made before namespaces are entered."""

    def __init__(self, pasta: str, ip: Ip) -> None:
        """pasta: its path, of `usable`"""
        self._ip = ip
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if not self._pid:
            try:
                _serve(theirs.fileno(), pasta, ip)
            finally:
                os._exit(0)
        theirs.close()

    def connect(self, network: int, address: str, user: int | None) -> None:
        """Start the pasta of an instance without waiting for it. Called in the instance's network.

        user: the descriptor of the user namespace of the network; None if it is that of this machine
        """
        self._ip(f"route add {_PENDING}")
        descriptors = [network] if user is None else [network, user]
        with contextlib.suppress(OSError):
            socket.send_fds(self._connection, [address.encode()], descriptors)

    def release(self) -> None:
        """Close this process's end. The pastas end when no process has it."""
        self._connection.close()

    def wait(self) -> None:
        """Wait until all pastas have ended."""
        os.waitpid(self._pid, 0)


def wait_until_connected() -> None:
    """Wait while the pasta of this process's network is starting."""
    end = time.monotonic() + _SECONDS
    while any(line.startswith("*\t00000000\t") for line in _lines("/proc/net/route")) and time.monotonic() < end:
        time.sleep(0.001)


def name_server() -> str:
    """Return the content of /etc/resolv.conf for an instance."""
    others = [line for line in _lines("/etc/resolv.conf") if not line.startswith("nameserver")]
    return "".join([f"nameserver {_NAMES}\n", *others])


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readlines()
    except OSError:
        return []


def _own_addresses() -> list[str]:
    """Return the addresses of this machine, at which its services may listen."""
    lines = [line.split() for line in _lines("/proc/net/fib_trie")]
    pairs = itertools.pairwise(lines)
    local = {first[1] for first, second in pairs if second[:3] == ["/32", "host", "LOCAL"] and len(first) == 2}
    return sorted(address for address in local if not address.startswith("127."))


def _serve(connection: int, pasta: str, ip: Ip) -> None:
    """Start a pasta for each message until all senders have closed the connection. Then end the pastas."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.dup2(connection, 3)
    os.closerange(4, 1 << 12)
    started = []
    with socket.socket(fileno=3) as requests:
        while True:
            address, descriptors, _, _ = socket.recv_fds(requests, 64, 2)
            if not address:
                break
            pid = os.fork()
            if not pid:
                os.close(3)
                _guard(pasta, address.decode(), descriptors, ip)
            with contextlib.suppress(OSError):  # both do it, so that it is done before either continues
                os.setpgid(pid, pid)
            started.append(pid)
            for descriptor in descriptors:
                os.close(descriptor)
    for pid in started:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _guard(pasta: str, address: str, descriptors: list[int], ip: Ip) -> None:
    """Start a pasta, and route the instance's network to its device. Exit when it ends."""
    os.setpgid(0, 0)
    try:
        options = (
            f"--foreground --quiet --ipv4-only --runas {os.geteuid()}:{os.getegid()} --ns-ifname {_DEVICE} "
            f"--address {address} --netmask 32 --no-map-gw --dns-forward {_NAMES} -t none -u none -T none -U none"
        ).split()
        routes = [f"route add unreachable {own}" for own in _own_addresses()]
        routes += [
            f"link set {_DEVICE} up",
            f"route add default dev {_DEVICE} src {address}",
            f"route del {_PENDING}",
        ]
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
        # Recent versions close inherited descriptors; other versions may not look into another process.
        for folder in ("/proc/self/fd", f"/proc/{os.getpid()}/fd"):
            network, *user = (f"{folder}/{descriptor}" for descriptor in descriptors)
            users = ["--userns", *user] if user else ["--netns-only"]
            command = [pasta, *options, *users, "--netns", network]
            # Python ignores this signal, which makes pasta give up.
            running = os.posix_spawn(pasta, command, os.environ, setsigdef=[signal.SIGPIPE])
            _in_network(descriptors, partial(_connect, running, ip, routes))
            os.waitpid(running, 0)
        _in_network(descriptors, lambda: ip(f"route del {_PENDING}"))
    finally:
        os._exit(0)


def _in_network(descriptors: list[int], call: Callable[[], object]) -> None:
    """Call a function in another process, which enters the network, and wait for it."""
    pid = os.fork()
    if not pid:
        try:
            network, *user = descriptors
            for descriptor in user:
                kernel.setns(descriptor, kernel.NEWUSER)
            kernel.setns(network, kernel.NEWNET)
            call()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _connect(pasta: int, ip: Ip, routes: list[str]) -> None:
    """Wait until a pasta has made its device, or has ended, and set the routes to the device."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and _is_running(pasta):
        if any(line.lstrip().startswith(f"{_DEVICE}:") for line in _lines("/proc/self/net/dev")):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/sys/net/ipv6/conf/{_DEVICE}/disable_ipv6", "w", encoding="utf-8") as switch,
            ):
                switch.write("1")
            ip(*routes)
            return
        time.sleep(0.001)


def _is_running(pid: int) -> bool:
    return any(line.startswith("State:") and line.split()[1] != "Z" for line in _lines(f"/proc/{pid}/status"))
