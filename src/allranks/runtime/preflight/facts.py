"""The facts about a rank that the preflight checks compare."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import torch

from allranks.contract.rank_env import RankEnv
from allranks.contract.variables import gpus_shared
from allranks.hardware import nccl, network, recognition, shared_memory

LIBRARIES = ("numpy", "deepspeed", "horovod", "lightning", "transformers", "accelerate")
"""Libraries that, like torch and Python, must have the same version on every rank."""

VERBS = Path("/dev/infiniband")


@dataclass(frozen=True)
class Facts:
    """The facts about one rank.

    rank, instance: number of the rank, and of its instance
    world_size: number of ranks, as this rank counts them
    host:       hostname of the instance
    versions:   of Python, torch, CUDA, NCCL and the installed LIBRARIES, by name
    gpu:        identifier of the rank's GPU within the instance; None on the CPU
    gpu_shared: whether sharing a GPU was requested
    unresolved: names of other instances that do not resolve
    shm_bytes:  size of /dev/shm in bytes; 0 if there is none
    infiniband: rate in Gbit/s of each port that NCCL can use: InfiniBand ports that are up and that this process can
                open
    infiniband_off: whether NCCL_IB_DISABLE disables InfiniBand
    sizes:      names of the Azure sizes whose hardware the instance shows
    family:     the family of NCCL's topology files of these sizes; "" if they have none
    topology_file: NCCL_TOPO_FILE, from a variable or a file of NCCL; "" if it is not set
    topology_exists: whether that file exists
    """

    rank: int
    instance: int
    world_size: int
    host: str
    versions: Mapping[str, str]
    gpu: str | None
    gpu_shared: bool
    unresolved: Sequence[str]
    shm_bytes: int
    infiniband: Sequence[float]
    infiniband_off: bool
    sizes: Sequence[str] = ()
    family: str = ""
    topology_file: str = ""
    topology_exists: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """The numbers of the instance and of the rank."""
        return self.instance, self.rank


def gather(env: RankEnv, environ: Mapping[str, str] = os.environ) -> Facts:
    """Return the facts about this rank. Only name resolution may take time."""
    gpu = _gpu(env, environ)
    # Without a GPU nothing follows from the size.
    recognised = recognition.recognise() if gpu is not None else recognition.NOTHING
    topology_file = environ.get("NCCL_TOPO_FILE") or nccl.configured(environ).get("NCCL_TOPO_FILE", "")
    return Facts(
        rank=env.rank,
        instance=env.instance_rank,
        world_size=env.world_size,
        host=socket.gethostname(),
        versions=_versions(),
        gpu=gpu,
        gpu_shared=gpus_shared(environ),
        unresolved=_unresolved(environ),
        shm_bytes=shared_memory.found(),
        infiniband=_infiniband(),
        infiniband_off=environ.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0"),
        sizes=tuple(size.name for size in recognised.sizes),
        family=recognised.family,
        topology_file=topology_file,
        topology_exists=bool(topology_file) and Path(topology_file).is_file(),
    )


def _versions() -> dict[str, str]:
    versions = {"Python": platform.python_version(), "torch": torch.__version__}
    if torch.version.cuda:
        versions["CUDA"] = torch.version.cuda
        versions["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _gpu(env: RankEnv, environ: Mapping[str, str]) -> str | None:
    """Return the UUID of this rank's GPU if CUDA is available, else its entry in CUDA_VISIBLE_DEVICES."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count:
        return str(torch.cuda.get_device_properties(env.local_rank % count).uuid)
    visible = [name.strip() for name in environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    visible = [name for name in visible if name not in ("", "-1", "none", "NoDevFiles")]
    return visible[env.local_rank % len(visible)] if visible else None


def _infiniband() -> tuple[float, ...]:
    usable = network.usable(network.devices())
    # A container sees the host's devices in /sys even if it lacks the device files.
    accessible = any(os.access(file, os.R_OK | os.W_OK) for file in VERBS.glob("uverbs*"))
    return tuple(device.gbit_s or 0.0 for device in usable) if accessible else ()


def _unresolved(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts of the job in Azure Batch's list that do not resolve."""
    unresolved = []
    for name in dict.fromkeys(environ.get("AZ_BATCH_HOST_LIST", "").split(",")):
        try:
            if name.strip():
                socket.getaddrinfo(name.strip(), None)
        except OSError:
            unresolved.append(name)
    return tuple(unresolved)
