"""Which CUDA releases run on a size's GPUs, and which GPUs have bfloat16.

Sources: compute capabilities from NVIDIA's CUDA GPUs page; CUDA 12.0 removed capability 3.x and CUDA 13.0 removed 5.x
to 7.0 (release notes of both); 10.x came with CUDA 12.8. Of torch's own builds, 12.6 has 5.0 to 9.0 and 13.0 has 7.5
and newer (pytorch/pytorch#172352, #190385). Drivers: CUDA Compatibility guide, minor version compatibility.
"""

from __future__ import annotations

from dataclasses import dataclass

from allranks.hardware.sizes import Size

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
"""Compute capabilities of the GPUs in the table of sizes. AMD's have none."""

_BFLOAT16 = (8, 0)


@dataclass(frozen=True)
class Release:
    """A CUDA release that the environments are built with.

    name:    the variant's folder in environments/variants
    version: of the toolkit
    driver:  oldest driver
    """

    name: str
    version: str
    driver: int


RELEASES = (Release("cuda12", "12.6", 525), Release("cuda13", "13.0", 580))
"""The default first."""


def releases_of(size: Size) -> tuple[Release, ...]:
    """Return the releases that run on the size's GPUs; none for AMD's GPUs and for those that CUDA 12 has removed."""
    return tuple(release for release in RELEASES if runs_on(release.version, size))


def runs_on(version: str, size: Size) -> bool:
    """Return whether CUDA of that version, such as "12.6", has code for the size's GPUs.

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
    """Return whether the size's GPUs compute in bfloat16: NVIDIA's from Ampere on, and AMD's MI300X."""
    capability = CAPABILITIES.get(size.gpu)
    return size.gpu.startswith("MI") if capability is None else capability >= _BFLOAT16
