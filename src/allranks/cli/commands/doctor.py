"""`allranks doctor`: list the stacks on this machine, or show the Azure sizes and their hardware."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.cli.completion import complete_sizes
from allranks.cli.console import console, to_json, warnings_text
from allranks.cli.options import JsonOption
from allranks.cli.parameters import argument, option
from allranks.cli.views import print_whole, table_of
from allranks.errors import InputError, Problem
from allranks.hardware import nccl, shared_memory, traps
from allranks.hardware.nccl import GRAPH_FAMILIES, TOPOLOGY_FOLDER, NetworkVariable, Topology
from allranks.hardware.network import Device
from allranks.hardware.sizes import Size, find, has_bfloat16, releases_of
from allranks.hardware.sizes import sizes as all_sizes
from allranks.local import gpus, preview
from allranks.local.stacks import BY_MODULE, TENSORFLOW_HOROVOD
from allranks.text import NOTHING, count


def doctor(
    size: Annotated[
        str | None,
        argument(
            "SIZE",
            "Azure size to describe instead of this machine, with or without Standard_.",
            autocompletion=complete_sizes,
        ),
    ] = None,
    sizes: Annotated[
        bool, option("--sizes", "List the Azure sizes with GPUs and their hardware, instead of this machine.")
    ] = False,
    gpu: Annotated[str | None, option("--gpu", "List only sizes with this GPU, such as A100.")] = None,
    infiniband: Annotated[
        bool | None, option("--infiniband/--no-infiniband", "List only sizes with InfiniBand, or without.")
    ] = None,
    retired: Annotated[bool, option("--retired", "Also list sizes that Azure has retired.")] = False,
    json: JsonOption = False,
) -> None:
    """List the stacks on this machine, or show the Azure sizes and their hardware.

    Also print how to install the other stacks. For a size: print its processes, variables and warnings, each with its
    source.

    For example: allranks doctor --sizes --gpu A100 --infiniband
    """
    if size is not None:
        filters = [name for name, is_given in (("--sizes", sizes), ("--gpu", gpu), ("--retired", retired)) if is_given]
        if filters:
            fix = f"allranks doctor {size}, or allranks doctor --sizes"
            raise InputError(Problem(filters[0], f"it is given together with the size {size}", "one of them", fix))
        found = find(size, where=f"size {size}")
        warnings = list(traps.of_size(found, date.today(), wants_infiniband=infiniband is True))
        settings = list(_settings(found))
        if json:
            print(to_json({**_row(found), "settings": settings, "warnings": warnings}))
        else:
            print_size(console(), found, settings, warnings)
    elif sizes or gpu or infiniband is not None or retired:
        _print_sizes(gpu, infiniband, retired, json)
    else:
        _list_stacks(json)


def _list_stacks(json: bool) -> None:
    instances = preview.kind_of("auto").name
    number = len(gpus.find(os.environ))
    versions = {stack: stack.version(Path.cwd()) for stack in (*BY_MODULE.values(), TENSORFLOW_HOROVOD)}
    if json:
        stacks = [{"stack": one.name, "version": version, "install": one.install} for one, version in versions.items()]
        print(to_json({"instances": instances, "gpus": number, "stacks": stacks}))
        return
    console().print(f"instances  {instances}: {_INSTANCES[instances]}")
    console().print(f"GPUs       {number or 'none; training runs on the CPU'}\n")
    table = table_of("stack", "version", "how to get it")
    for stack, version in versions.items():
        if version is None:
            table.add_row(stack.name, "-", stack.install, style="bright_black")
        else:
            table.add_row(stack.name, version, "")
    console().print(table)


_INSTANCES = {"rack": "each has its own network, hostname and /tmp", "loopback": "addresses on 127.0.0.0/8"}


def _print_sizes(gpu: str | None, infiniband: bool | None, retired: bool, json: bool) -> None:
    if gpu is not None and not any(gpu.lower() in size.gpu.lower() for size in all_sizes()):
        models = ", ".join(dict.fromkeys(size.gpu for size in all_sizes()))
        raise InputError(Problem(f"--gpu {gpu}", "no size has this GPU", f"one of {models}", ""))
    today = date.today()
    matches = [
        size
        for size in all_sizes()
        if (gpu is None or gpu.lower() in size.gpu.lower())
        and (infiniband is None or size.infiniband is infiniband)
        and (retired or not size.is_retired(today))
    ]
    if json:
        print(to_json([_row(size) for size in matches]))
    else:
        print_sizes(console(), matches, today)


def _row(size: Size) -> dict[str, Any]:
    return {
        **asdict(size),
        "infiniband": size.infiniband,
        "process_count_per_instance": size.gpus,
        "cuda_variants": [release.name for release in releases_of(size)],
        "bfloat16": has_bfloat16(size),
    }


def _settings(size: Size) -> Iterator[NetworkVariable]:
    """Yield the variables that the runtime would set if Azure's files exist. Values determined at run time are in
    brackets."""
    device, interface = Device("<each InfiniBand device found>"), "<the interface found>"
    folder = TOPOLOGY_FOLDER / size.topology
    files = Topology(
        size.topology,
        str(folder / "topo.xml") if size.topology else None,
        str(folder / "graph.xml") if size.topology in GRAPH_FAMILIES else None,
    )
    devices = (device,) if size.infiniband else ()
    for variables in (nccl.settings, nccl.ucx_settings):
        for setting in variables(size, devices, files, interface=interface):
            yield replace(setting, value=setting.value.replace(str(device), device.name))


def print_sizes(out: Console, found: Sequence[Size], today: date) -> None:
    """Print the sizes as a table. Sizes that Azure has retired by `today` are grey."""
    if not found:
        out.print("No size matches. To include sizes that Azure has retired, add --retired.")
        return
    with_retirement = any(size.retired for size in found)
    # The widest row fits into 80 columns. The details of a size have the other facts.
    table = table_of("!size", "GPUs", "CUDA", "InfiniBand", ">GiB", *(["retired"] if with_retirement else []))
    for size in found:
        cells = (
            size.name,
            f"{size.gpus} x {size.gpu} {size.gpu_memory_gb} GB",
            ", ".join(release.name.removeprefix("cuda") for release in releases_of(size)) or NOTHING,
            _infiniband(size),
            str(size.host_memory_gib or NOTHING),
            *([str(size.retired or NOTHING)] if with_retirement else []),
        )
        table.add_row(*cells, style="bright_black" if size.is_retired(today) else "")
    print_whole(out, table)


def print_size(out: Console, size: Size, settings: Sequence[NetworkVariable], warnings: Sequence[Problem]) -> None:
    """Print the facts of a size, the settings that the runtime would make on it, and its warnings."""
    out.print(Text.assemble((size.name, "bold"), f"  {size.gpus} x {size.gpu}, {size.gpu_memory_gb} GB each"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bright_black", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(size):
        facts.add_row(name, value)
    out.print(Padding(facts, (0, 0, 0, 2)))
    out.print()
    out.print("set by the runtime, unless already set", style="bright_black")
    for setting in settings:
        out.print(Text.assemble("  ", (setting.name, "cyan"), f"={shlex.quote(setting.value)}"), soft_wrap=True)
        out.print(Padding(Text(setting.why, "bright_black"), (0, 0, 0, 4)))
    if warnings:
        out.print()
        out.print(warnings_text(warnings), soft_wrap=True)
    out.print()
    out.print(
        Text("\n").join([Text("from", style="bright_black"), *(Text(f"  {source}") for source in size.sources)]),
        soft_wrap=True,
    )


def _facts(size: Size) -> list[tuple[str, str]]:
    ranks, need = count(size.gpus, "rank"), shared_memory.needed(size.gpus, gpus=True)
    expected = [
        f"{bandwidth:g} GB/s on {where}"
        for bandwidth, where in ((size.all_reduce_gb_s, "one instance"), (size.all_reduce_two_instances_gb_s, "two"))
        if bandwidth is not None
    ]
    variants = (
        f"{release.name} (CUDA {release.version}, driver {release.driver} or newer)" for release in releases_of(size)
    )
    rows = {
        "process_count_per_instance": f"{size.gpus}, a process for each GPU",
        "InfiniBand": _infiniband(size) if size.infiniband else "none",
        "NVLink": {True: "yes", False: "no", None: NOTHING}[size.nvlink],
        "CUDA": ", ".join(variants) or "none of the environments' variants",
        "precision": "bfloat16" if has_bfloat16(size) else "float16 with a loss scale: no bfloat16",
        "CPU": f"{size.vcpus} vCPUs, {size.architecture}",
        "host memory": f"{size.host_memory_gib} GiB" if size.host_memory_gib else "",
        "/dev/shm": f"at least {shared_memory.mib(need)} for {ranks} (resources.shm_size)",
        "all-reduce": f"bus bandwidth of at least {', '.join(expected)}, by Azure's health check" if expected else "",
        "retired": str(size.retired or ""),
    }
    return [(name, value) for name, value in rows.items() if value]


def _infiniband(size: Size) -> str:
    if not size.infiniband:
        return NOTHING
    if size.infiniband_ports is None:
        return "yes"
    return f"{size.infiniband_ports} x {size.infiniband_gbit_s} Gb/s"
