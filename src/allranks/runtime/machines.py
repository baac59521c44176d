"""The machines that a training runs on, whatever the platform calls its instances: emulated ones share one."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from allranks.runtime.ranks import Ranks

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Drawn by the kernel when it starts (proc(5)): containers and namespaces of one machine read the same."""


@dataclass(frozen=True)
class Machine:
    """A machine, and how much of it the ranks may use together.

    name:  the same in every history that was measured on it until it is started anew
    cores: that some rank may run on
    gpus:  that some rank computes on
    """

    name: str
    cores: int
    gpus: int


@dataclass(frozen=True)
class Seat:
    """What one rank knows of its machine. gpu: the card's own number, None on the CPU."""

    machine: str
    cores: frozenset[int]
    gpu: str | None


def measured_on(ranks: Ranks) -> dict[str, Any]:
    """Return what a history says of where it was measured: world_size, instance_count, device and machines. A
    collective."""
    seats: list[Seat] = [own_seat(ranks)] * ranks.world_size
    distributed.all_gather_object(seats, own_seat(ranks))
    return {
        "world_size": ranks.world_size,
        "instance_count": ranks.instance_count,
        "device": ranks.device.type,
        "machines": [asdict(machine) for machine in machines(seats)],
    }


def own_seat(ranks: Ranks) -> Seat:
    """Return where this rank sits."""
    gpu = None
    if ranks.device.type == "cuda":
        gpu = str(torch.cuda.get_device_properties(ranks.device).uuid)
    try:
        machine = BOOT.read_text(encoding="ascii").partition("-")[0]
    except OSError:
        machine = socket.gethostname()
    return Seat(machine, frozenset(os.sched_getaffinity(0)), gpu)


def machines(seats: Sequence[Seat]) -> list[Machine]:
    """Return the machines under the seats, in the order of their first rank."""
    found = []
    for name in dict.fromkeys(seat.machine for seat in seats):
        here = [seat for seat in seats if seat.machine == name]
        cores = frozenset().union(*(seat.cores for seat in here))
        found.append(Machine(name, len(cores), len({seat.gpu for seat in here if seat.gpu})))
    return found
