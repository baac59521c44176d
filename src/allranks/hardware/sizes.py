"""The Azure sizes with GPUs: one table, sizes.csv, each row with its sources.

A source is a file of a public repository: `azurehpc-health-checks` and `azhpc-images` (Azure) at a commit,
`azure-compute-docs` and `azure-docs` (MicrosoftDocs) with the date on the page. A value that no source gives is empty
in the table and None here. To add a size, add a row.
"""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem

PREFIX = "Standard_"
ARM64 = "arm64"

_TABLE = Path(__file__).with_name("sizes.csv")


@dataclass(frozen=True)
class Size:
    """The hardware of one instance of a size.

    name:              as Azure writes it, Standard_ND96asr_v4
    gpus, gpu:         how many GPUs, and their model
    gpu_memory_gb:     GB of each GPU
    nvlink:            whether NVLink connects its GPUs; no for one GPU, and for AMD's, which have another link
    infiniband_ports:  devices of one port each; None if no source gives the number
    infiniband_gbit_s: Gbit/s of each port
    rdma, sriov:       whether the size is RDMA capable, and whether its InfiniBand has SR-IOV, without which virtual
                       machines have none
    architecture:      of the CPU: x86-64 or arm64
    host_memory_gib:   GiB, from the size's page
    retired:           the day from which it is unavailable; None if no retirement is announced
    topology:          the folder below /opt/microsoft in which Azure's host image puts NCCL's files for it; "" if none
    all_reduce_gb_s:   the bus bandwidth, in GB/s, that Azure's health check expects of an all-reduce on one instance
    all_reduce_two_instances_gb_s: the same on two
    sources:           the sources of the row
    """

    name: str
    gpus: int
    gpu: str
    gpu_memory_gb: int
    nvlink: bool | None
    infiniband_ports: int | None
    infiniband_gbit_s: int | None
    rdma: bool
    sriov: bool
    architecture: str
    host_memory_gib: int | None
    vcpus: int
    retired: date | None
    topology: str
    all_reduce_gb_s: float | None
    all_reduce_two_instances_gb_s: float | None
    sources: tuple[str, ...]

    @property
    def infiniband(self) -> bool:
        """Whether processes on it have InfiniBand, which takes SR-IOV as well as RDMA."""
        return self.rdma and self.sriov

    @property
    def processes(self) -> int:
        """The process_count_per_instance that fits: one process per GPU."""
        return self.gpus

    def is_retired(self, today: date) -> bool:
        """Return whether the size is no longer available."""
        return self.retired is not None and self.retired <= today


@cache
def sizes() -> tuple[Size, ...]:
    """Return every size, in the table's order: by family, then by generation."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(_size(row) for row in csv.DictReader(file))


def known(name: str) -> Size | None:
    """Return the size of that name, ignoring case and with or without "Standard_"; None if it is unknown."""
    return _by_key().get(_key(name))


def find(name: str, where: str = "size") -> Size:
    """Return the size of that name, matched as in `known`. Raise InputError with similar names if there is none.

    where: the place in the error
    """
    size = known(name)
    if size is None:
        near = ", ".join(size.name for size in _near(_key(name)))
        found = f"no size {name!r} is known"
        expected = f"an Azure size with GPUs{f', such as {near}' if near else ''}"
        raise InputError(Problem(where, found, expected, "see them all: allranks doctor --sizes --retired"))
    return size


def _near(key: str, limit: int = 4) -> list[Size]:
    """Return the sizes whose names contain the key, else those with similar names."""
    keys = [known_key for known_key in _by_key() if key and key in known_key]
    return [_by_key()[near] for near in (keys or difflib.get_close_matches(key, _by_key(), cutoff=0.5))[:limit]]


def _key(name: str) -> str:
    return name.strip().lower().removeprefix(PREFIX.lower())


@cache
def _by_key() -> dict[str, Size]:
    return {_key(size.name): size for size in sizes()}


def _size(row: dict[str, str]) -> Size:
    values: dict[str, Any] = dict(row)
    for name in ("gpus", "gpu_memory_gb", "vcpus", "host_memory_gib", "infiniband_ports", "infiniband_gbit_s"):
        values[name] = int(row[name]) if row[name] else None
    for name in ("all_reduce_gb_s", "all_reduce_two_instances_gb_s"):
        values[name] = float(row[name]) if row[name] else None
    for name in ("nvlink", "rdma", "sriov"):
        values[name] = {"yes": True, "no": False, "": None}[row[name]]
    values["retired"] = date.fromisoformat(row["retired"]) if row["retired"] else None
    values["sources"] = tuple(values.pop("source").split("; "))
    return Size(**values)
