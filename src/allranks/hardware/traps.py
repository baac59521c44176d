"""Warnings about a size: the job would start, but be slow, waste GPUs, or fail at its first step.

The place of a warning is the key of the job that causes it; the caller adds the step and the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from allranks.errors import Problem
from allranks.hardware import network
from allranks.hardware.network import Device
from allranks.hardware.sizes import ARM64, CAPABILITIES, Size, releases_of, runs_on, sizes

SIZE_KEY = "resources.instance_type"
PROCESSES_KEY = "distribution.process_count_per_instance"


def of_size(size: Size, today: date, *, wants_infiniband: bool = False) -> Iterator[Problem]:
    """Yield the warnings about the size that apply to every job.

    wants_infiniband: whether the job asks for InfiniBand, see `asks_for_infiniband`
    """
    yield from _retired(size, today)
    yield from of_infiniband(size, today, wanted=wants_infiniband)
    yield from _platform(size)


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
        yield Problem(SIZE_KEY, found, "a size that Azure offers", "choose another one: allranks doctor --sizes")
    else:
        found = f"{size.name} will be retired on {size.retired}"
        yield Problem(SIZE_KEY, found, fix="choose another one before that day: allranks doctor --sizes")


def of_infiniband(size: Size, today: date, *, wanted: bool) -> Iterator[Problem]:
    """Yield a problem if the size lacks InfiniBand although its name or the job implies it.

    wanted: whether the job asks for InfiniBand, see `asks_for_infiniband`
    """
    if size.infiniband:
        return
    if size.rdma:
        # Sources: setup-infiniband.md of azure-compute-docs; Azure ML's documents on distributed GPU training.
        found = f"{size.name} is RDMA capable and has no SR-IOV: a job on it has no InfiniBand"
        yield Problem(SIZE_KEY, found, "a size whose InfiniBand has SR-IOV", _alternative(size, today))
    elif wanted:
        found = f"the job asks for InfiniBand, and {size.name} has none: its name has no r"
        fix = f"{_alternative(size, today)}; or remove the variables of InfiniBand"
        yield Problem(SIZE_KEY, found, "a size with InfiniBand", fix)


def of_cuda(size: Size, version: str) -> Iterator[Problem]:
    """Yield a problem if the environment's CUDA version does not support the size's GPUs.

    version: such as "12.6"; "" if it is unknown
    """
    # `_platform` warns about AMD's GPUs.
    if not version or size.gpu not in CAPABILITIES or runs_on(version, size):
        return
    releases = releases_of(size)
    expected = " or ".join(f"CUDA {release.version} (variant {release.name})" for release in releases)
    found = f"the environment has CUDA {version}, which does not run on the {size.gpu} of {size.name}"
    fix = "choose another one: allranks doctor --sizes"
    if releases:
        fix = f"build and register the environments with environments/variant.sh {releases[0].name}"
    yield Problem(SIZE_KEY, found, expected or "a size with a newer GPU", fix, code="cuda-version")


def _platform(size: Size) -> Iterator[Problem]:
    if size.architecture == ARM64:
        found = f"{size.name} has a Grace CPU, which is {ARM64}, and {size.gpus} GPUs, not 8"
        fix = f"build the image for {ARM64}; one for x86-64 ends with: exec format error"
        yield Problem(SIZE_KEY, found, f"an environment whose image is built for linux/{ARM64}", fix)
    if size.gpu.startswith("MI"):
        found = f"{size.name} has AMD GPUs: neither CUDA nor NCCL runs on it"
        expected = "an environment with ROCm, whose torch brings RCCL"
        yield Problem(SIZE_KEY, found, expected, "use an image with torch for ROCm")


def of_processes(size: Size, processes: int) -> Iterator[Problem]:
    """Yield a warning about the number of processes per instance if the platform starts each process."""
    gpus = "1 GPU" if size.gpus == 1 else f"{size.gpus} GPUs"
    expected, fix = f"{size.gpus}: a process for each GPU", f"set process_count_per_instance to {size.gpus}"
    if processes > size.gpus:
        sharing = ": ranks would share one" if size.gpus > 1 else ""
        fix += ", and instance_count to the number of ranks" if size.gpus == 1 else ""
        found = f"{processes} processes on the {gpus} of {size.name}{sharing}; NCCL refuses two ranks on one GPU"
        yield Problem(PROCESSES_KEY, found, expected, fix, code="shared-gpus")
    elif processes < size.gpus:
        idle = size.gpus - processes
        noun, verb = "process" if processes == 1 else "processes", "is" if idle == 1 else "are"
        if processes == 1:
            fix += (
                ": Azure ML starts one if it is left out. Ignore this if that process starts the others (torchrun, "
                "Accelerate, Lightning)"
            )
        yield Problem(
            PROCESSES_KEY, f"{processes} {noun} on the {gpus} of {size.name}: {idle} {verb} idle", expected, fix
        )


def of_devices(size: Size, devices: Sequence[Device]) -> Iterator[Problem]:
    """Yield a warning if an instance has fewer active InfiniBand devices than its size should have."""
    if not size.infiniband:
        return
    active = network.usable(devices)
    expected_count = size.infiniband_ports or 1
    if len(active) >= expected_count:
        return
    inactive = [
        f"{device} is {device.state or 'in no state'}"
        for device in devices
        if device.is_infiniband and device not in active
    ]
    found = f"{len(active)} InfiniBand devices are up" + (f"; {', '.join(inactive)}" if inactive else "")
    fix = "use an image with rdma-core, and mount /dev/infiniband"
    fix = "let the platform replace the instance" if inactive else fix
    yield Problem(str(network.SYSFS), found, f"{expected_count}, as {size.name} has", fix)


def _alternative(size: Size, today: date) -> str:
    """Return the advice to use a size with the same GPU and InfiniBand, or to search for one."""
    names = [each.name for each in sizes() if each.gpu == size.gpu and each.infiniband and not each.is_retired(today)]
    return f"use {names[0]}" if names else "see: allranks doctor --sizes --infiniband"
