"""Instances that are Linux namespaces: each has its own network, address, hostname, process ids, /tmp, /dev/shm, /sys
and /etc/hosts.

An ordinary user needs unprivileged user namespaces; root does not. The addresses are private to the rack: two racks can
use the same addresses at the same time.
"""

import contextlib
import os
import socket
from collections.abc import Sequence
from typing import Any, ClassVar

from allranks.local.instances import kernel, network_out
from allranks.local.instances.instance import HOSTS, AgentIsolation, Instance, InstanceKind, bind_text, hosts_text

BRIDGE = "rack"
BRIDGE_ADDRESS = "10.77.0.1"
"""The address of the supervisor's servers for the instances. Only instances can reach it."""
MAPPED_SUFFIX = ".rack"
"""Appended to the names of IPv4-mapped addresses."""

_IN_CONTAINERS = ("/sys", "/dev", "/tmp")
_COPIED = (HOSTS, "/etc/resolv.conf", "/etc/nsswitch.conf")
"""Files of the instance that are copied into its container."""

KEPT_MOUNT_FLAGS = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048}
"""statvfs(3) flag -> mount(2) flag. Inside a user namespace, the kernel rejects a bind mount that lacks one of these
flags if its source has it."""


class Rack(InstanceKind):
    """The kind of instances in namespaces, for the engine."""

    name = "rack"
    isolation = "allranks.local.instances.rack:RackIsolation"
    interface = "eth0"
    isolated = True

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        return tuple(Instance(index, _address(index), f"node-{rank}") for rank, index in enumerate(indexes))

    def master_port(self, master: Instance) -> int:  # noqa: ARG002 - no other instance uses the master's ports
        from allranks.contract.variables import MASTER_PORT  # the supervisor starts faster without it

        return MASTER_PORT


class RackAgentIsolation:
    """An agent is the first process of a PID namespace, in the network of its instance. Each step has its own mounts,
    hostname and System V objects."""

    def __init__(self, network: int | None) -> None:
        assert network is not None
        self.network = network

    def fork(self) -> int:
        processes = os.open("/proc/self/ns/pid", os.O_RDONLY)
        # The agent is the first process of a new PID namespace. When it ends, the kernel kills all processes in it. It
        # does not outlive the supervisor, which is the first process of the rack's own PID namespace.
        kernel.unshare(kernel.NEWPID)
        try:
            pid = os.fork()
        except OSError:
            kernel.setns(processes, kernel.NEWPID)
            raise
        if pid:
            kernel.setns(processes, kernel.NEWPID)
        os.close(processes)
        return pid

    def enter(self, instance: dict[str, Any]) -> None:
        kernel.setns(self.network, kernel.NEWNET)
        kernel.unshare(kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC)
        kernel.mount("proc", "/proc", "proc")
        with contextlib.suppress(OSError):
            # Refused in some containers. The host's interfaces then show in /sys.
            kernel.mount("sysfs", "/sys", "sysfs")
        root = os.open(instance["root"], os.O_PATH) if instance["root"] else None  # its own /tmp may hide it
        network_out.wait_until_connected()
        kernel.set_hostname(instance["hostname"])
        temporary = _own_tmp(instance["temporary"], instance["keep"])
        if os.path.isdir("/dev/shm"):
            kernel.mount("tmpfs", "/dev/shm", "tmpfs", options=f"mode=1777,size={instance['shm_size']}")
        _own_hosts(instance["hosts"])
        for source, target in instance["read_only"]:
            _bind_read_only(source, target)
        if root is not None:
            _enter_container(root, temporary, instance["keep"], instance["driver"])
            os.close(root)


class RackIsolation:
    """A bridge that connects the instances of a run. An instance's network exists until the run ends."""

    agent: ClassVar[type[AgentIsolation]] = RackAgentIsolation

    def __init__(self, *, online: bool) -> None:
        pasta = network_out.usable() if online else None
        self.out = network_out.NetworkOut(pasta, ip) if pasta else None
        self.user = _enter_own_namespaces(self.out)
        self.network = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.networks: dict[int, int] = {}
        _choose_name_service(has_server=self.out is not None)
        ip("link set lo up", f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up")

    def connect(self, index: int, address: str) -> int:
        if index not in self.networks:
            self.networks[index] = self._connect(f"rack{index}", address)
        return self.networks[index]

    def listen(self) -> socket.socket:
        with contextlib.suppress(OSError):  # it has the address already
            ip(f"addr add {BRIDGE_ADDRESS}/16 dev {BRIDGE}")
        return socket.create_server((BRIDGE_ADDRESS, 0))

    def _connect(self, port: str, address: str) -> int:
        """Make a network with one interface, eth0, that is connected to the bridge. Return the descriptor that keeps
        the network alive."""
        kernel.unshare(kernel.NEWNET)
        network = os.open("/proc/self/ns/net", os.O_RDONLY)
        kernel.setns(self.network, kernel.NEWNET)
        ip(
            f"link add {port} type veth peer name eth0 netns /proc/self/fd/{network}",
            f"link set {port} master {BRIDGE}",
            f"link set {port} up",
            inherit=(network,),
        )
        kernel.setns(network, kernel.NEWNET)
        try:
            with contextlib.suppress(OSError):
                # Otherwise duplicate address detection delays every address by a second or two.
                _write("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1")
            ip("link set lo up", f"addr add {address}/16 dev eth0", "link set eth0 up")
            if self.out is not None:
                self.out.connect(network, address, self.user)
        finally:
            kernel.setns(self.network, kernel.NEWNET)
        return network


def _address(index: int) -> str:
    # 10.77.0.0/16 exists inside the rack only. The first instance is 10.77.0.10.
    high, low = divmod(index + 10, 256)
    return f"10.77.{high}.{low}"


def _enter_own_namespaces(out: network_out.NetworkOut | None) -> int | None:
    """Continue as a child process in namespaces in which this user may mount and configure networks. Return the
    descriptor of the user namespace; None if it is that of this machine. The parent waits for the child and exits with
    its status."""
    own_user = None
    own_namespaces = kernel.NEWNS | kernel.NEWNET | kernel.NEWPID
    try:
        if os.geteuid() != 0:
            raise PermissionError
        kernel.unshare(own_namespaces)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | own_namespaces)
        kernel.map_identity(0, user, 0, group)
        own_user = os.open("/proc/self/ns/user", os.O_RDONLY)
    child = os.fork()
    if child:
        if out is not None:
            out.release()
        _, status = os.waitpid(child, 0)
        if out is not None:
            out.wait()
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            os.kill(os.getpid(), -code)  # the engine names the signal
        os._exit(code & 0xFF)
    kernel.die_with_parent()
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc")
    return own_user


def ip(*commands: str, inherit: tuple[int, ...] = ()) -> None:
    """Run commands of `ip`. inherit: descriptors in the commands. Raise OSError with the output on failure."""
    program = network_out.program("ip")
    if program is None:
        raise FileNotFoundError("the program `ip` is missing (package iproute2)")
    for descriptor in inherit:
        os.set_inheritable(descriptor, True)
    input_reader, input_writer = os.pipe()
    _write(input_writer, "\n".join(commands))  # a pipe's buffer is larger than these few lines
    output_reader, output_writer = os.pipe()
    redirections = ((input_reader, 0), (output_writer, 1), (output_writer, 2))
    streams = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in redirections]
    pid = os.posix_spawn(program, [program, "-batch", "-"], os.environ, file_actions=streams)
    os.close(input_reader)
    os.close(output_writer)
    with open(output_reader, encoding="utf-8", errors="replace") as file:
        output = file.read().strip()
    _, status = os.waitpid(pid, 0)
    for descriptor in inherit:
        os.set_inheritable(descriptor, False)
    if status != 0:
        raise OSError(f"ip: {output}")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str | int, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _own_tmp(folder: str, keep: list[str]) -> str:
    """Mount the folder at /tmp, and mount the paths of `keep` that are below /tmp at the same paths. Return the current
    path of the folder.

    The folder is on disk. In memory, data that a step stages there would fill it.
    """
    below = sorted({path for path in map(os.path.realpath, keep) if path == "/tmp" or path.startswith("/tmp/")})
    if "/tmp" in below:
        return folder
    preserved: list[tuple[str, int]] = []
    for path in below:
        if not preserved or not path.startswith(preserved[-1][0] + "/"):
            preserved.append((path, os.open(path, os.O_PATH)))
    kernel.mount(folder, "/tmp", flags=kernel.MS_BIND)
    for path, descriptor in preserved:
        source = f"/proc/self/fd/{descriptor}"
        if os.path.isdir(source):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _write(path, "")
        kernel.mount(source, path, flags=kernel.MS_BIND | kernel.MS_REC)
        os.close(descriptor)
    return "/tmp"


def _enter_container(root: int, temporary: str, keep: list[str], driver: list[list[str]]) -> None:
    """Make a root filesystem the root of this process.

    temporary: the folder for changes to it
    keep:      paths of this machine that are also visible in it
    driver:    (source, target) of the driver's files
    """
    layers = f"{temporary}/.container"
    upper, work, new = (f"{layers}/{name}" for name in ("upper", "work", "root"))
    options = f"lowerdir=/proc/self/fd/{root},upperdir={upper},workdir={work},userxattr"

    def mount() -> None:
        for folder in (upper, work, new):
            os.makedirs(folder)
        kernel.mount("overlay", new, "overlay", options=options)

    try:
        mount()
    except OSError:  # the disk of the workspace cannot store the changes, for example because it is an overlay itself
        kernel.mount("tmpfs", layers, "tmpfs")
        mount()
    # Links in the image must not lead out of it, so paths are resolved inside of the image.
    places = [*((path, path) for path in (*_IN_CONTAINERS, *keep) if os.path.exists(path)), *driver]
    sources = [(target, os.path.isdir(path), os.open(path, os.O_PATH)) for path, target in places]
    copies = [(path, _read(path)) for path in _COPIED if os.path.exists(path)]
    os.chroot(new)
    os.makedirs("/proc", exist_ok=True)
    kernel.mount("proc", "/proc", "proc")
    for path, is_folder, source in sources:
        os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
        if not is_folder and not os.path.exists(path):
            _write(path, "")
        # Without the mounts in /tmp, which `keep` contains.
        kernel.mount(f"/proc/self/fd/{source}", path, flags=kernel.MS_BIND | (0 if path == "/tmp" else kernel.MS_REC))
        os.close(source)
    kernel.mount("tmpfs", layers, "tmpfs", options="size=4k,mode=0")
    os.makedirs("/etc", exist_ok=True)
    for path, content in copies:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # it may be a link
        _write(path, content)


def _own_hosts(instances: list[list[str]]) -> None:
    if os.path.exists(HOSTS):
        local = hosts_text([("127.0.0.1", "localhost")], MAPPED_SUFFIX)
        content = f"{local}::1 localhost\n{hosts_text(instances, MAPPED_SUFFIX)}"
        try:
            bind_text(content, "/dev/shm")  # in memory: a disk takes ten times as long
        except OSError:  # it is missing or too small
            bind_text(content, "/tmp")


def _choose_name_service(*, has_server: bool) -> None:
    """Resolve names by files, and by a name server only if the instance reaches one. Otherwise every look-up would wait
    for an unreachable server."""
    file = "/etc/nsswitch.conf"
    with contextlib.suppress(OSError):
        with open(file, encoding="utf-8") as lines:
            others = [line for line in lines if not line.startswith("hosts:")]
        bind_text("".join([f"hosts: files{' dns' if has_server else ''}\n", *others]), "/tmp", file)
        if has_server:
            bind_text(network_out.name_server(), "/tmp", os.path.realpath("/etc/resolv.conf"))


def _bind_read_only(source: str, target: str) -> None:
    kernel.mount(source, target, flags=kernel.MS_BIND | kernel.MS_REC)
    flags = os.statvfs(target).f_flag
    preserved = sum(mount for flag, mount in KEPT_MOUNT_FLAGS.items() if flags & flag)
    kernel.mount("none", target, flags=kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | preserved)
