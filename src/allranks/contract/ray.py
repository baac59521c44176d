"""The Ray distribution: Azure ML starts a Ray cluster on the instances, with the head on the first.

The settings below, which are passed to `ray start`, and port 6379 are documented (RayDistribution of azure-ai-ml,
experimental; azure-rest-api-specs#42027). The variables of the job's processes are not. This module assumes one process
per instance, with the variables of the instance and RAY_ADDRESS, by which `ray.init()` finds the cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from allranks.contract import variables
from allranks.contract.launch import Distribution, Launch, Process, read_instance
from allranks.contract.rank_env import RankEnv
from allranks.errors import Problem

HEAD_PORT = 6379


@dataclass(frozen=True)
class Ray(Distribution):
    """Arguments of `ray start`. None means Ray's default. An instance has one process.

    port, address: where the head listens (6379 on the first instance by default); address is `host` or `host:port`
    """

    type: ClassVar[str] = "ray"
    port: int | None = None
    address: str | None = None
    include_dashboard: bool | None = None
    dashboard_port: int | None = None
    head_node_additional_args: str = ""
    worker_node_additional_args: str = ""

    def problems(self, instance_count: int) -> tuple[Problem, ...]:
        """Return the problems of the settings, by key: of the counts, and a port out of range."""
        ports = {"distribution.port": self.port, "distribution.dashboard_port": self.dashboard_port}
        return super().problems(instance_count) + tuple(
            Problem(where=key, found=str(port), expected="a port from 1 to 65535", fix=f"set {key} to a free port")
            for key, port in ports.items()
            if port is not None and not 1 <= port <= 65535
        )

    def environment(self, launch: Launch, process: Process) -> dict[str, str]:  # noqa: ARG002
        """Return RAY_ADDRESS, and MASTER_PORT if it is not the default."""
        return {"RAY_ADDRESS": head(self, launch)} | variables.unusual_port(launch.master_port)


def head(settings: Ray, launch: Launch) -> str:
    """Return the head's address, as `host:port`."""
    host, port = variables.split_endpoint(settings.address or launch.addresses[0])
    return f"{host}:{settings.port or port or (launch.ports[0] if launch.ports else HEAD_PORT)}"


def read(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the instance's rank as the rank; None if RAY_ADDRESS is not set, or the instances are not numbered.

    The master is the head's instance, but not at Ray's port, which is in use. `auto` and `local` name no host.
    Raise InputError if the instance's variables contradict each other.
    """
    address, position = variables.text(environ, "RAY_ADDRESS"), read_instance(environ)
    if address is None or position is None:
        return None
    rank, count = position
    host = variables.split_endpoint(address.removeprefix("ray://"))[0]
    return RankEnv(
        rank=rank,
        world_size=count,
        instance_rank=rank,
        instance_count=count,
        master_addr=variables.master_address(environ, count) if host in ("auto", "local") else host,
        master_port=variables.master_port(environ),
        launcher=Ray.type,
    )
