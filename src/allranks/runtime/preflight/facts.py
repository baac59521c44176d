"""What a rank knows of itself before it trains."""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import torch

from allranks.contract.own_variables import gpus_shared
from allranks.contract.rank_env import RankEnv
from allranks.hardware import infiniband, shared_memory

LIBRARIES = ("numpy", "deepspeed", "horovod", "lightning", "transformers", "accelerate")
"""Beside torch and Python: what trains in lockstep only where it is the same on every rank."""

VERBS = Path("/dev/infiniband")


@dataclass(frozen=True)
class Facts:
    """One rank's part of the picture.

    rank, instance: who it is; host: the hostname of its instance
    versions:   of Python, torch, CUDA, NCCL and the libraries that are installed, by name
    gpu:        what tells its GPU from every other of the instance, None where it trains on the CPU
    gpu_shared: whether sharing it was asked for
    unresolved: the names of other instances that it can't resolve
    shm_bytes:  the size of /dev/shm in bytes, 0 where there is none
    infiniband: the rate in Gbit/s of each port that NCCL can use: InfiniBand, up, and open to this process
    infiniband_off: whether NCCL was told to leave it
    """

    rank: int
    instance: int
    host: str
    versions: Mapping[str, str]
    gpu: str | None
    gpu_shared: bool
    unresolved: tuple[str, ...]
    shm_bytes: int
    infiniband: tuple[float, ...]
    infiniband_off: bool

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str | bytes) -> Facts:
        record = json.loads(text)
        record |= {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return cls(**record)


def gather(env: RankEnv, environ: Mapping[str, str] = os.environ) -> Facts:
    """Return the facts of this rank. Nothing is waited for but the resolver of names."""
    memory = shared_memory.found()
    return Facts(
        rank=env.rank,
        instance=env.instance_rank,
        host=socket.gethostname(),
        versions=_versions(),
        gpu=_gpu(env, environ),
        gpu_shared=gpus_shared(environ),
        unresolved=_unresolved(environ),
        shm_bytes=memory.total if memory else 0,
        infiniband=_infiniband(),
        infiniband_off=environ.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0"),
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
    """Return the GPU's own id where CUDA tells it, else the one that CUDA_VISIBLE_DEVICES gives to this rank."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count:
        return str(torch.cuda.get_device_properties(env.local_rank % count).uuid)
    visible = [name.strip() for name in environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    visible = [name for name in visible if name not in ("", "-1", "none", "NoDevFiles")]
    return visible[env.local_rank % len(visible)] if visible else None


def _infiniband() -> tuple[float, ...]:
    usable = infiniband.usable(infiniband.devices())
    # A container sees the host's devices in /sys also where it was not given the files to open them.
    open_to_us = any(os.access(file, os.R_OK | os.W_OK) for file in VERBS.glob("uverbs*"))
    return tuple(device.gbit_s or 0.0 for device in usable) if open_to_us else ()


def _unresolved(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Of the hosts that Azure Batch lists for the job, those without an address."""
    names = environ.get("AZ_BATCH_HOST_LIST", "").split(",")
    return tuple(name for name in dict.fromkeys(names) if name.strip() and not _resolves(name.strip()))


def _resolves(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
