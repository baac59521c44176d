"""Print the Azure sizes as a table, and one size in detail."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import date

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.cli.views import print_whole, table_of
from allranks.cli.views.problems import warnings_text
from allranks.errors import Problem
from allranks.hardware import shared_memory
from allranks.hardware.cuda import has_bfloat16, releases_of
from allranks.hardware.nccl import NetworkVariable
from allranks.hardware.sizes import Size
from allranks.text import NOTHING, count


def print_sizes(out: Console, found: Sequence[Size], today: date) -> None:
    """Print the sizes as a table. Sizes that Azure has retired by `today` are grey."""
    if not found:
        out.print("No size matches. To include sizes that Azure has retired, add --retired.")
        return
    # Omit empty columns.
    with_retirement = any(size.retired for size in found)
    # The widest row fits 80 columns; the other facts are in the details of a size.
    table = table_of("!size", "GPUs", "CUDA", "InfiniBand", ">GiB", *(["retired"] if with_retirement else []))
    table.padding = (0, 1, 0, 0)
    for size in found:
        cells = (
            size.name,
            f"{size.gpus} x {size.gpu} {size.gpu_memory_gb} GB",
            ", ".join(release.name.removeprefix("cuda") for release in releases_of(size)) or NOTHING,
            _infiniband(size),
            _or_dash(size.host_memory_gib),
            *([_or_dash(size.retired)] if with_retirement else []),
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
    ranks, need = count(size.processes, "rank"), shared_memory.needed(size.processes, gpus=True)
    expected = [
        f"{bandwidth:g} GB/s on {where}"
        for bandwidth, where in ((size.all_reduce_gb_s, "one instance"), (size.all_reduce_two_instances_gb_s, "two"))
        if bandwidth is not None
    ]
    # The variants of the environments that run on the size, with the oldest driver of each.
    variants = (
        f"{release.name} (CUDA {release.version}, driver {release.driver} or newer)" for release in releases_of(size)
    )
    rows = {
        "process_count_per_instance": f"{size.processes}, a process for each GPU",
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


def _or_dash(value: object) -> str:
    return NOTHING if value is None else str(value)
