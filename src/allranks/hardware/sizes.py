"""The Azure sizes with GPUs, and the CUDA releases that run on them. Each row of the table, sizes.csv, has its sources.

A source is a file of a public repository: `azurehpc-health-checks` and `azhpc-images` (Azure) at a commit,
`azure-compute-docs` and `azure-docs` (MicrosoftDocs) with the date on the page. A value without a source is empty in
the table and None here. To add a size, add a row.

Sources about CUDA: compute capabilities from NVIDIA's CUDA GPUs page; CUDA 12.0 removed capability 3.x and CUDA 13.0
removed 5.x to 7.0 (release notes of both); 10.x came with CUDA 12.8. Of torch's own builds, 12.6 has 5.0 to 9.0 and
13.0 has 7.5 and newer (pytorch/pytorch#172352, #190385). Drivers: CUDA Compatibility guide, minor version
compatibility.
"""

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
        """Whether processes on it have InfiniBand, which requires SR-IOV as well as RDMA."""
        return self.rdma and self.sriov

    def is_retired(self, today: date) -> bool:
        return self.retired is not None and self.retired <= today


@cache
def sizes() -> tuple[Size, ...]:
    """Return all sizes in the table's order: by family, then by generation."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(_size(row) for row in csv.DictReader(file))


def known(name: str) -> Size | None:
    """Return the size with a name, ignoring case and "Standard_"; None if it is unknown."""
    return _by_key().get(_key(name))


def find(name: str, where: str = "size") -> Size:
    """Return the size with a name, as `known`. Raise InputError with similar names if it is unknown. where: the place
    in the error"""
    size = known(name)
    if size is None:
        key, known_keys = _key(name), _by_key()
        similar = [each for each in known_keys if key and key in each]
        similar = similar or difflib.get_close_matches(key, known_keys, n=4, cutoff=0.5)
        near = ", ".join(known_keys[each].name for each in similar[:4])
        found = f"no size {name!r} is known"
        expected = f"an Azure size with GPUs{f', such as {near}' if near else ''}"
        raise InputError(Problem(where, found, expected, "see them all: allranks doctor --sizes --retired"))
    return size


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


CAPABILITIES = {
    "K80": (3, 7),
    "V100": (7, 0),
    "T4": (7, 5),
    "A100": (8, 0),
    "H100": (9, 0),
    "H100 NVL": (9, 0),
    "H200": (9, 0),
    "GB200": (10, 0),
    "GB300": (10, 3),
}
"""Compute capabilities of NVIDIA's GPUs in the table of sizes."""

_BFLOAT16 = (8, 0)


@dataclass(frozen=True)
class Release:
    """A CUDA release that the environments are built with.

    name:    the variant's folder in environments/variants
    version: of the toolkit
    driver:  the oldest driver
    """

    name: str
    version: str
    driver: int


RELEASES = (Release("cuda12", "12.6", 525), Release("cuda13", "13.0", 580))
"""The default first."""


def releases_of(size: Size) -> tuple[Release, ...]:
    """Return the releases that run on the size's GPUs; none for AMD's GPUs, and for GPUs that CUDA 12 dropped."""
    return tuple(release for release in RELEASES if runs_on(release.version, size))


def runs_on(version: str, size: Size) -> bool:
    """Return whether a CUDA version, such as "12.6", supports the size's GPUs.

    True for a version that is not a number, and False for AMD's GPUs.
    """
    capability = CAPABILITIES.get(size.gpu)
    if capability is None:
        return False
    numbers = version.split(".")
    if not all(number.isdecimal() for number in numbers[:2]):
        return True
    release = tuple(int(number) for number in numbers[:2])
    oldest = (7, 5) if release >= (13,) else (5, 0) if release >= (12,) else (3, 5)
    newest = (12, 9) if release >= (12, 8) else (9, 9)
    return oldest <= capability <= newest


def has_bfloat16(size: Size) -> bool:
    """Return whether the size's GPUs compute in bfloat16: NVIDIA's since Ampere, and AMD's MI300X."""
    capability = CAPABILITIES.get(size.gpu)
    return size.gpu.startswith("MI") if capability is None else capability >= _BFLOAT16
