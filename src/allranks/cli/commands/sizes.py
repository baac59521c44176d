"""`allranks sizes`: list the Azure sizes with GPUs, or describe one of them."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

from allranks.cli.console import console, to_json
from allranks.cli.options import JsonOption, argument, option
from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from allranks.hardware.nccl import NetworkVariable
    from allranks.hardware.sizes import Size


def sizes(
    name: Annotated[str | None, argument("NAME", "Name of a size to describe, with or without Standard_.")] = None,
    gpu: Annotated[str | None, option("--gpu", "List only sizes with this GPU, such as A100.")] = None,
    infiniband: Annotated[
        bool | None, option("--infiniband/--no-infiniband", "List only sizes with InfiniBand, or without.")
    ] = None,
    retired: Annotated[bool, option("--retired", "Also list sizes that Azure has retired.")] = False,
    json: JsonOption = False,
) -> None:
    """List the Azure sizes with GPUs and their hardware.

    With a name: print the processes, variables and warnings for that size, each with its source.
    """
    from allranks.cli.views.sizes import print_size, print_sizes
    from allranks.hardware import traps
    from allranks.hardware.sizes import find

    today = date.today()
    if name is not None:
        filters = [option for option, is_given in (("--gpu", gpu is not None), ("--retired", retired)) if is_given]
        if filters:
            fix = f"allranks sizes {name}, or allranks sizes {' '.join(filters)}"
            raise InputError(Problem(filters[0], f"it is given together with the size {name}", "one of them", fix))
        size = find(name, where=f"size {name}")
        settings, warnings = _settings(size), list(traps.of_size(size, today, wants_infiniband=infiniband is True))
        if json:
            print(to_json({**_row(size), "settings": list(settings), "warnings": warnings}))
        else:
            print_size(console(), size, settings, warnings)
        return
    matches = _matching(gpu, infiniband, retired, today)
    if json:
        print(to_json([_row(size) for size in matches]))
    else:
        print_sizes(console(), matches, today)


def _matching(gpu: str | None, infiniband: bool | None, retired: bool, today: date) -> list[Size]:
    from allranks.hardware.sizes import sizes as all_sizes

    if gpu is not None and not any(gpu.lower() in size.gpu.lower() for size in all_sizes()):
        models = ", ".join(dict.fromkeys(size.gpu for size in all_sizes()))
        raise InputError(Problem(f"--gpu {gpu}", "no size has this GPU", f"one of {models}", ""))
    return [
        size
        for size in all_sizes()
        if (gpu is None or gpu.lower() in size.gpu.lower())
        and (infiniband is None or size.infiniband is infiniband)
        and (retired or not size.is_retired(today))
    ]


def _row(size: Size) -> dict[str, Any]:
    from allranks.hardware.cuda import has_bfloat16, releases_of

    return {
        **asdict(size),
        "infiniband": size.infiniband,
        "process_count_per_instance": size.processes,
        "cuda_variants": [release.name for release in releases_of(size)],
        "bfloat16": has_bfloat16(size),
    }


def _settings(size: Size) -> tuple[NetworkVariable, ...]:
    """Return the variables that the runtime would set if Azure's files exist. Values determined at run time are in
    brackets."""
    from allranks.hardware import nccl
    from allranks.hardware.infiniband import Device
    from allranks.hardware.nccl import GRAPH_FAMILIES, TOPOLOGY_FOLDER, Topology

    device, interface = Device("<each InfiniBand device found>"), "<the interface found>"
    folder = TOPOLOGY_FOLDER / size.topology
    files = Topology(
        size.topology,
        str(folder / "topo.xml") if size.topology else None,
        str(folder / "graph.xml") if size.topology in GRAPH_FAMILIES else None,
    )
    devices = (device,) if size.infiniband else ()
    return tuple(
        replace(setting, value=setting.value.replace(str(device), device.name))
        for setting in (
            *nccl.settings(size, devices, files, interface=interface),
            *nccl.ucx_settings(size, devices, files, interface=interface),
        )
    )
