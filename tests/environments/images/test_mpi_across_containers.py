"""mpirun in one container of a built image starts ranks in another one by ssh, as root and as an ordinary user, for
mpi4py, Horovod and DeepSpeed: each container has a network and a hostname of its own."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from local_images import Images, run
from mpi_trainings import BY_LIBRARY, printed

import bounded

HOSTS = ("node-0", "node-1")
USERS = {"root": 0, "ranks": 1000}
BOUND_SECONDS = 60

RANK = """
import json, os
from mpi4py import MPI

world = MPI.COMM_WORLD
here = {
    "host": os.uname().nodename,
    "user": os.getuid(),
    "home": os.environ["HOME"],
    "path": os.environ["PATH"],
    "session": "SSH_CONNECTION" in os.environ,
    "image": "ALLRANKS_DEVICE" in os.environ,
    "library": MPI.Get_library_version()[:13],
}
found = world.gather(here)
if world.rank == 0:
    print(json.dumps(found))
"""


@dataclass(frozen=True)
class Cluster:
    """Two containers. run: the command that runs another one in each of them, as a user"""

    images: Images
    containers: tuple[str, ...]
    networks: tuple[str, ...]
    folder: Path

    def command(self, number: int, user: str, *command: str) -> list[str]:
        home = "/root" if user == "root" else f"/home/{user}"
        keys = f"--volume={self.folder / user}:{home}/.ssh:ro"
        options = ["--isolation", "chroot", "--hostname", HOSTS[number], "--user", user, keys]
        enter = ["ip", "netns", "exec", self.networks[number]]
        return [*enter, "buildah", "run", *options, self.containers[number], "--", "env", f"HOME={home}", *command]


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, images: Images, image_of: Callable[[str], str], tmp_path: Path
) -> Iterator[Cluster]:
    """Two containers of an environment's image, on a network of two. Nothing of it is left."""
    image = image_of(request.param)
    addresses = [f"10.88.0.{number}" for number in (1, 2)]
    names = [f"--add-host={host}:{address}" for host, address in zip(HOSTS, addresses, strict=True)]
    for user, number in USERS.items():
        keys = tmp_path / user
        keys.mkdir()
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "id_ed25519")], images.environment)
        shutil.copy(keys / "id_ed25519.pub", keys / "authorized_keys")
        for path in (keys, *keys.iterdir()):
            os.chown(path, number, number)
    with ExitStack() as undo:
        networks = tuple(f"allranks-{os.getpid()}-{number}" for number in (0, 1))
        for network in networks:
            run(["ip", "netns", "add", network], images.environment)
            undo.callback(run, ["ip", "netns", "del", network], images.environment)
        first, second = networks
        pair = ["type", "veth", "peer", "name", "eth0", "netns", second]
        run(["ip", "-n", first, "link", "add", "eth0", *pair], images.environment)
        for network, address in zip(networks, addresses, strict=True):
            for setting in (f"addr add {address}/24 dev eth0", "link set lo up", "link set eth0 up"):
                run(["ip", "-n", network, *setting.split()], images.environment)
            port = "net.ipv4.ip_unprivileged_port_start=22"
            run(["ip", "netns", "exec", network, "sysctl", "-q", "-w", port], images.environment)
        containers = []
        for _ in HOSTS:
            containers.append(
                run(["buildah", "from", "--pull-never", *names, image], images.environment).stdout.strip()
            )
            undo.callback(run, ["buildah", "rm", containers[-1]], images.environment)
        yield Cluster(images, tuple(containers), networks, tmp_path)


def output_of_ranks(cluster: Cluster, user: str, program: str) -> str:
    """The output of a Python program that mpirun in the first container starts in each of the two."""
    sshd = bounded.Popen(
        cluster.command(1, user, "/usr/sbin/sshd", "-D", "-e"),
        env=cluster.images.environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        arguments = ["-np", "2", "--host", "node-0:1,node-1:1", "--mca", "btl_tcp_if_include", "eth0"]
        mpirun = ["mpirun", *arguments, "--mca", "oob_tcp_if_include", "eth0", "python", "-c", program]
        done = subprocess.run(
            cluster.command(0, user, *mpirun),
            env=cluster.images.environment,
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
    finally:
        os.killpg(sshd.pid, signal.SIGTERM)
        _, log = sshd.communicate(timeout=BOUND_SECONDS)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{log}"
    return done.stdout


@pytest.mark.parametrize("cluster", ["openmpi-ofed"], indirect=True)
@pytest.mark.parametrize(("user", "number"), USERS.items())
def test_ranks_in_another_container(cluster: Cluster, user: str, number: int) -> None:
    first, second = json.loads(output_of_ranks(cluster, user, RANK))
    home = "/root" if user == "root" else "/home/ranks"
    assert (first["host"], second["host"]) == HOSTS
    # The other container's session has the image's PATH, but none of its variables.
    assert (first["session"], first["image"], second["session"], second["image"]) == (False, True, True, False)
    for each in (first, second):
        assert (each["user"], each["home"], each["library"]) == (number, home, "Open MPI v4.1")
        assert each["path"].startswith("/opt/python/bin:")


@pytest.mark.parametrize(("cluster", "program"), BY_LIBRARY.items(), ids=BY_LIBRARY, indirect=["cluster"])
@pytest.mark.parametrize(("user", "number"), USERS.items())
def test_a_training_across_containers(cluster: Cluster, program: str, user: str, number: int) -> None:
    lines = output_of_ranks(cluster, user, program).splitlines()
    assert sorted(line for line in lines if line.startswith(f"{number} ")) == printed(number, size=2)
