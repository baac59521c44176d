"""Initialise Horovod: with MPI under mpirun, and with gloo and a rendezvous server on rank 0 under other launchers."""

from __future__ import annotations

import os
from typing import Any

from torch import distributed

from allranks.contract.detect import detect
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem


def initialise() -> None:
    """Initialise Horovod if it is not initialised. torch's process group must be initialised. A collective."""
    import horovod.torch as hvd

    if hvd.is_initialized():
        return
    env = detect()
    if env.launcher != "mpi":
        os.environ.update(_gloo(env))
    hvd.init()
    if hvd.size() != env.world_size:
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size} (launcher {env.launcher})",
                found=f"Horovod counts {hvd.size()} rank{'s' * (hvd.size() > 1)}: it was built for another MPI",
                expected=f"{env.world_size}",
                fix="build Horovod with the Open MPI whose mpirun starts the ranks",
            )
        )


def _gloo(env: RankEnv) -> dict[str, str]:
    """Return the variables that horovodrun would set for a rank (horovod.runner.gloo_run)."""
    port: list[Any] = [None]
    if distributed.get_rank() == 0:
        port = [_start_rendezvous_server(env)]
    distributed.broadcast_object_list(port, src=0)
    return {
        "HOROVOD_RANK": str(env.rank),
        "HOROVOD_SIZE": str(env.world_size),
        "HOROVOD_LOCAL_RANK": str(env.local_rank),
        "HOROVOD_LOCAL_SIZE": str(env.local_world_size),
        "HOROVOD_CROSS_RANK": str(env.instance_rank),
        "HOROVOD_CROSS_SIZE": str(env.instance_count),
        "HOROVOD_HOSTNAME": _host(env.instance_rank),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": os.environ.get("GLOO_SOCKET_IFNAME", ""),
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": env.master_addr or "127.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port[0]),
    }


def _start_rendezvous_server(env: RankEnv) -> int:
    """Start the server through which the ranks exchange their addresses, in a thread. Return its port."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.http.http_server import RendezvousServer

    hosts = ",".join(f"{_host(instance)}:{env.local_world_size}" for instance in range(env.instance_count))
    server = RendezvousServer(verbose=0)
    port: int = server.start()
    server.init(get_host_assignments(parse_hosts(hosts), env.world_size))
    return port


def _host(instance_rank: int) -> str:
    # Not the hostname: emulated instances share one, and Horovod counts the ranks of a host by its name.
    return f"instance-{instance_rank}"
