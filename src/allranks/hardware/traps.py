"""Warnings about a size: the job would start, but be slow, waste GPUs, or fail at its first step.

A warning's `where` is the key of the job that causes it; the caller adds the step and the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from allranks.errors import Problem
from allranks.hardware import cuda, infiniband
from allranks.hardware.infiniband import Device
from allranks.hardware.sizes import ARM64, Size, sizes

SIZE_KEY = "resources.instance_type"
PROCESSES_KEY = "distribution.process_count_per_instance"

_ALL = "see: allranks sizes --infiniband"


def of_size(size: Size, today: date, *, wants_infiniband: bool = False) -> tuple[Problem, ...]:
    """Return the warnings about the size that hold for every job.

    wants_infiniband: whether the job asks for InfiniBand; see `asks_for_infiniband`
    """
    return (*_retired(size, today), *of_infiniband(size, today, wanted=wants_infiniband), *_platform(size))


def of_infiniband(size: Size, today: date, *, wanted: bool) -> tuple[Problem, ...]:
    """Return a problem if the size has no InfiniBand although its name or the job says so.

    wanted: whether the job asks for InfiniBand; see `asks_for_infiniband`
    """
    return tuple(_without_infiniband(size, today, wanted))


def of_cuda(size: Size, version: str) -> tuple[Problem, ...]:
    """Return a problem if CUDA of the environment's version does not run on the size's GPUs.

    version: such as "12.6"; "" if it is unknown
    """
    return tuple(_cuda(size, version))


def of_processes(size: Size, processes: int) -> tuple[Problem, ...]:
    """Return the warnings about the number of processes per instance, for a per-process launch."""
    return tuple(_processes(size, processes))


def of_devices(size: Size, devices: Sequence[Device]) -> tuple[Problem, ...]:
    """Return a warning if fewer InfiniBand devices are up on an instance than its size has."""
    return tuple(_devices(size, devices))


def asks_for_infiniband(variables: Mapping[str, str]) -> bool:
    """Return whether a job's environment variables name InfiniBand: NCCL's transport or devices, or UCX's devices."""
    return (
        variables.get("NCCL_IB_DISABLE", "").strip() == "0"
        or bool(variables.get("NCCL_IB_HCA", "").strip())
        or variables.get("NCCL_NET", "").strip().upper() == "IB"
        or "mlx5" in variables.get("UCX_NET_DEVICES", "")
    )


def _retired(size: Size, today: date) -> Iterator[Problem]:
    if size.retired is None:
        return
    if size.is_retired(today):
        found = f"{size.name} is retired since {size.retired}"
        yield Problem(SIZE_KEY, found, "a size that Azure still has", "choose another one: allranks sizes")
    else:
        found = f"{size.name} will be retired on {size.retired}"
        yield Problem(SIZE_KEY, found, fix="move to another one before: allranks sizes")


def _without_infiniband(size: Size, today: date, wants_infiniband: bool) -> Iterator[Problem]:
    if size.infiniband:
        return
    if size.rdma:
        # Sources: setup-infiniband.md of azure-compute-docs; Azure ML's documents on distributed GPU training.
        yield Problem(
            where=SIZE_KEY,
            found=f"{size.name} is RDMA capable and has no SR-IOV: a job on it sees no InfiniBand",
            expected="a size whose InfiniBand has SR-IOV",
            fix=_alternative(size, today),
        )
    elif wants_infiniband:
        yield Problem(
            where=SIZE_KEY,
            found=f"the job asks for InfiniBand, and {size.name} has none: its name has no r",
            expected="a size with InfiniBand",
            fix=f"{_alternative(size, today)}; or take the variables of InfiniBand out",
        )


def _cuda(size: Size, version: str) -> Iterator[Problem]:
    # AMD's GPUs have a warning of their own.
    if not version or size.gpu not in cuda.CAPABILITIES or cuda.runs_on(version, size):
        return
    releases = cuda.releases_of(size)
    expected = " or ".join(f"CUDA {release.version} (variant {release.name})" for release in releases)
    yield Problem(
        where=SIZE_KEY,
        found=f"the environment has CUDA {version}, which does not run on the {size.gpu} of {size.name}",
        expected=expected or "a size with a newer GPU",
        fix=f"build and register the environments with allranks environments sync --variant {releases[0].name}"
        if releases
        else "choose another one: allranks sizes",
        code="cuda-version",
    )


def _platform(size: Size) -> Iterator[Problem]:
    if size.architecture == ARM64:
        yield Problem(
            where=SIZE_KEY,
            found=f"{size.name} has a Grace CPU, which is {ARM64}, and {size.gpus} GPUs, not 8",
            expected=f"an environment whose image is built for linux/{ARM64}",
            fix=f"build the image for {ARM64}; one for x86-64 ends with: exec format error",
        )
    if size.gpu.startswith("MI"):
        yield Problem(
            where=SIZE_KEY,
            found=f"{size.name} has AMD GPUs: neither CUDA nor NCCL runs on it",
            expected="an environment with ROCm, whose torch brings RCCL",
            fix="use an image with torch for ROCm",
        )


def _processes(size: Size, processes: int) -> Iterator[Problem]:
    gpus = "1 GPU" if size.gpus == 1 else f"{size.gpus} GPUs"
    if processes > size.gpus:
        found = f"{processes} processes on the {gpus} of {size.name}"
        if size.gpus > 1:
            found += ": ranks would share one"
        yield Problem(
            where=PROCESSES_KEY,
            found=f"{found}; NCCL refuses two ranks on one GPU",
            expected=f"{size.gpus}: a process for each GPU",
            fix=f"set process_count_per_instance to {size.processes}"
            + (", and instance_count to the number of ranks" if size.gpus == 1 else ""),
            code="shared-gpus",
        )
    elif processes < size.gpus:
        idle = size.gpus - processes
        yield Problem(
            where=PROCESSES_KEY,
            found=f"{processes} {'process' if processes == 1 else 'processes'} on the {gpus} of {size.name}: "
            f"{idle} {'is' if idle == 1 else 'are'} idle",
            expected=f"{size.gpus}: a process for each GPU",
            fix=f"set process_count_per_instance to {size.processes}"
            + (
                ": Azure ML starts one if it is left out. Ignore this if that process starts the others (torchrun, "
                "Accelerate, Lightning)"
                if processes == 1
                else ""
            ),
        )


def _devices(size: Size, devices: Sequence[Device]) -> Iterator[Problem]:
    if not size.infiniband:
        return
    active = infiniband.usable(devices)
    expected_count = size.infiniband_ports or 1
    if len(active) >= expected_count:
        return
    inactive = [
        f"{device} is {device.state or 'in no state'}"
        for device in devices
        if device.is_infiniband and device not in active
    ]
    yield Problem(
        where=str(infiniband.SYSFS),
        found=f"{len(active)} InfiniBand devices are up" + (f"; {', '.join(inactive)}" if inactive else ""),
        expected=f"{expected_count}, as {size.name} has",
        fix="let the platform replace the instance"
        if inactive
        else "use an image with rdma-core, and give it /dev/infiniband",
    )


def _alternative(size: Size, today: date) -> str:
    """Return the advice to use a size with the same GPU and InfiniBand, or to look for one."""
    names = [each.name for each in sizes() if each.gpu == size.gpu and each.infiniband and not each.is_retired(today)]
    return f"use {names[0]}" if names else _ALL
