"""What people trip over with a size, as warnings: the job would start, and be slow, wasteful, or dead at its first
step.

A warning's `where` is the key of a job that causes it; who knows the step and the file adds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from allranks.errors import Problem
from allranks.hardware import infiniband
from allranks.hardware.infiniband import Device
from allranks.hardware.sizes import ARM64, Size, sizes

SIZE_KEY = "resources.instance_type"
PROCESSES_KEY = "distribution.process_count_per_instance"

_ALL = "see: allranks sizes --infiniband"


def of_size(size: Size, today: date, *, wants_infiniband: bool = False) -> tuple[Problem, ...]:
    """Return what is to be known of the size whatever runs on it.

    wants_infiniband: whether the job asks for InfiniBand: see `asks_for_infiniband`
    """
    return (*_retired(size, today), *_without_infiniband(size, today, wants_infiniband), *_other_machine(size))


def of_processes(size: Size, processes: int) -> tuple[Problem, ...]:
    """Return what is wrong with so many processes on each instance, where the platform starts a process for each
    rank."""
    return tuple(_processes(size, processes))


def of_devices(size: Size, devices: Sequence[Device]) -> tuple[Problem, ...]:
    """Return what is missing of the InfiniBand that the size has, among the devices found on an instance."""
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


def _without_infiniband(size: Size, today: date, wanted: bool) -> Iterator[Problem]:
    if size.infiniband:
        return
    if size.rdma:
        # Sources: setup-infiniband.md of azure-compute-docs; Azure ML's documents on distributed GPU training.
        yield Problem(
            where=SIZE_KEY,
            found=f"{size.name} is RDMA capable and has no SR-IOV: a job on it sees no InfiniBand",
            expected="a size whose InfiniBand has SR-IOV",
            fix=_instead(size, today),
        )
    elif wanted:
        yield Problem(
            where=SIZE_KEY,
            found=f"the job asks for InfiniBand, and {size.name} has none: its name has no r",
            expected="a size with InfiniBand",
            fix=f"{_instead(size, today)}; or take the variables of InfiniBand out",
        )


def _other_machine(size: Size) -> Iterator[Problem]:
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
                ", unless the one process starts the others (torchrun, Accelerate, Lightning)" if processes == 1 else ""
            ),
        )


def _devices(size: Size, devices: Sequence[Device]) -> Iterator[Problem]:
    if not size.infiniband:
        return
    up = infiniband.usable(devices)
    promised = size.infiniband_ports or 1
    if len(up) >= promised:
        return
    down = [
        f"{device} is {device.state or 'in no state'}"
        for device in devices
        if device.is_infiniband and device not in up
    ]
    yield Problem(
        where=str(infiniband.SYSFS),
        found=f"{len(up)} InfiniBand devices are up" + (f"; {', '.join(down)}" if down else ""),
        expected=f"{promised}, as {size.name} has",
        fix="let the platform replace the instance"
        if down
        else "use an image with rdma-core, and give it /dev/infiniband",
    )


def _instead(size: Size, today: date) -> str:
    """Return a size of the same GPU that has InfiniBand, or where to look for one."""
    same = [one.name for one in sizes() if one.gpu == size.gpu and one.infiniband and not one.is_retired(today)]
    return f"use {same[0]}" if same else _ALL
