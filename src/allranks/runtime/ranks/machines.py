"""The physical machines that a training runs on. Emulated instances share one machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allranks.runtime.ranks.ranks import Ranks

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""A random id that the kernel creates at boot (proc(5)). Containers and namespaces on one machine read the same id."""


@dataclass(frozen=True)
class Machine:
    """A machine, and its resources that the ranks use.

    name:  identifies the machine until it reboots
    cores: number of cores that at least one rank may run on
    gpus:  number of GPUs that at least one rank computes on
    """

    name: str
    cores: int
    gpus: int


@dataclass(frozen=True)
class RankResources:
    """The resources of one rank. gpu: the GPU's UUID; None on the CPU."""

    machine: str
    cores: frozenset[int]
    gpu: str | None


def measured_on(ranks: Ranks) -> dict[str, Any]:
    """Return a description of the hardware for a history: world_size, instance_count, device and machines. Every rank
    must call it."""
    from torch import distributed  # TensorFlow's environment does not have it

    own = own_resources(ranks)
    resources = [own] * ranks.world_size
    distributed.all_gather_object(resources, own)
    return {
        "world_size": ranks.world_size,
        "instance_count": ranks.instance_count,
        "device": ranks.device.type,
        "machines": unique_machines(resources),
    }


def own_resources(ranks: Ranks) -> RankResources:
    gpu = None
    if ranks.device.type == "cuda":
        import torch  # as above

        gpu = str(torch.cuda.get_device_properties(ranks.device).uuid)
    return RankResources(machine_name(), frozenset(os.sched_getaffinity(0)), gpu)


def machine_name() -> str:
    """Return a name of this machine, the same for all instances that are emulated on it."""
    try:
        return BOOT.read_text(encoding="ascii").partition("-")[0]
    except OSError:
        return socket.gethostname()


def unique_machines(resources: Sequence[RankResources]) -> list[dict[str, Any]]:
    """Return the machines of the ranks in the format of a history, in the order of their first rank."""
    result = []
    for name in dict.fromkeys(each.machine for each in resources):
        on_machine = [each for each in resources if each.machine == name]
        cores = frozenset().union(*(each.cores for each in on_machine))
        result.append(asdict(Machine(name, len(cores), len({each.gpu for each in on_machine if each.gpu}))))
    return result
