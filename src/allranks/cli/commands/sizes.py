"""`allranks sizes`: the Azure sizes with GPUs, and what follows from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from allranks.cli.options import JsonOption

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from rich.console import Console
    from rich.table import Table

    from allranks.errors import Problem
    from allranks.hardware.setting import Setting
    from allranks.hardware.sizes import Size


def sizes(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="One size, with or without Standard_: what follows from it.", show_default=False
        ),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="Only sizes with this GPU, such as A100.", show_default=False)
    ] = None,
    infiniband: Annotated[
        bool | None,
        typer.Option(
            "--infiniband/--no-infiniband", help="Only sizes with InfiniBand, or without.", show_default=False
        ),
    ] = None,
    retired: Annotated[bool, typer.Option("--retired", help="Also sizes that Azure has no more.")] = False,
    json: JsonOption = False,
) -> None:
    """List the Azure sizes with GPUs and what each has.

    With a name: the processes, variables and warnings that follow from it, and where that is known from.
    """
    from datetime import date

    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.hardware.sizes import find

    today = date.today()
    if name is not None:
        _refuse_filters(name, gpu, retired)
        size = find(name, where=f"size {name}")
        warnings = _warnings(size, today, wants_infiniband=infiniband is True)
        if json:
            print(to_json({**_row(size), "settings": list(_settings(size)), "warnings": list(warnings)}))
        else:
            _print_page(console(), size, warnings)
        return
    found = _chosen(gpu, infiniband, retired, today)
    if json:
        print(to_json([_row(size) for size in found]))
    else:
        _print_table(console(), found, today)


def _refuse_filters(name: str, gpu: str | None, retired: bool) -> None:
    from allranks.errors import InputError, Problem

    given = [option for option, is_given in (("--gpu", gpu is not None), ("--retired", retired)) if is_given]
    if given:
        fix = f"allranks sizes {name}, or allranks sizes {' '.join(given)}"
        raise InputError(Problem(given[0], f"is given together with the size {name}", "one of the two", fix))


def _chosen(gpu: str | None, infiniband: bool | None, retired: bool, today: date) -> list[Size]:
    from allranks.errors import InputError, Problem
    from allranks.hardware.sizes import sizes as all_sizes

    if gpu is not None and not any(gpu.lower() in size.gpu.lower() for size in all_sizes()):
        models = ", ".join(dict.fromkeys(size.gpu for size in all_sizes()))
        raise InputError(Problem(f"--gpu {gpu}", "no size has such a GPU", f"one of {models}", "give one of these"))
    return [
        size
        for size in all_sizes()
        if (gpu is None or gpu.lower() in size.gpu.lower())
        and (infiniband is None or size.infiniband is infiniband)
        and (retired or not size.is_retired(today))
    ]


def _row(size: Size) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(size), "infiniband": size.infiniband, "process_count_per_instance": size.processes}


def _settings(size: Size) -> tuple[Setting, ...]:
    """What the runtime would set where Azure's files are there; what it finds at run time stands in brackets."""
    from dataclasses import replace

    from allranks.hardware import nccl, ucx
    from allranks.hardware.infiniband import Device
    from allranks.hardware.topology import FOLDER, GRAPH_FAMILIES, Topology

    device, interface = Device("<each InfiniBand device found>"), "<the interface found>"
    folder = FOLDER / size.topology
    files = Topology(
        size.topology,
        str(folder / "topo.xml") if size.topology else None,
        str(folder / "graph.xml") if size.topology in GRAPH_FAMILIES else None,
    )
    found = (device,) if size.infiniband else ()
    return tuple(
        replace(setting, value=setting.value.replace(str(device), device.name))
        for setting in (
            *nccl.settings(size, found, files, interface=interface),
            *ucx.settings(size, found, files, interface=interface),
        )
    )


def _warnings(size: Size, today: date, *, wants_infiniband: bool) -> tuple[Problem, ...]:
    from allranks.hardware import traps

    return traps.of_size(size, today, wants_infiniband=wants_infiniband)


def _print_table(out: Console, found: Sequence[Size], today: date) -> None:
    if not found:
        out.print("No such size. Sizes that Azure has no more are shown with --retired.")
        return
    # A column says nothing where no row has anything in it.
    with_retirement = any(size.retired for size in found)
    # The widest row fits 80 columns: the rest is on the size's page.
    table = _table("size", "GPUs", "NVLink", "InfiniBand", ">GiB", *(["retired"] if with_retirement else []))
    for size in found:
        cells = (
            size.name,
            f"{size.gpus} x {size.gpu} {size.gpu_memory_gb} GB",
            _yes(size.nvlink),
            _infiniband(size),
            _or_dash(size.host_memory_gib),
            *([_or_dash(size.retired)] if with_retirement else []),
        )
        table.add_row(*cells, style="bright_black" if size.is_retired(today) else "")
    out.print(table)


def _print_page(out: Console, size: Size, warnings: Sequence[Problem]) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from allranks.cli.problems import warnings_text

    out.print(Text.assemble((size.name, "bold"), f"  {size.gpus} x {size.gpu}, {size.gpu_memory_gb} GB each"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bright_black", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(size):
        facts.add_row(name, value)
    out.print(Padding(facts, (0, 0, 0, 2)))
    out.print()
    out.print("what the runtime sets, where nobody else has", style="bright_black")
    for setting in _settings(size):
        out.print(Text.assemble("  ", (setting.name, "cyan"), f"={setting.value}"), soft_wrap=True)
        out.print(Padding(Text(setting.why, "bright_black"), (0, 0, 0, 4)))
    if warnings:
        out.print()
        out.print(warnings_text(warnings), soft_wrap=True)
    out.print()
    out.print(
        Text("\n").join([Text("from", style="bright_black"), *(Text(f"  {one}") for one in size.sources)]),
        soft_wrap=True,
    )


def _facts(size: Size) -> list[tuple[str, str]]:
    from allranks.hardware import shared_memory

    need = shared_memory.needed(size.processes, gpus=True)
    expected = [
        f"{bandwidth:g} GB/s on {where}"
        for bandwidth, where in (
            (size.all_reduce_gb_s, "one instance"),
            (size.all_reduce_two_instances_gb_s, "two"),
        )
        if bandwidth is not None
    ]
    rows = {
        "process_count_per_instance": f"{size.processes}, a process for each GPU",
        "InfiniBand": _infiniband(size) if size.infiniband else "none",
        "NVLink": _yes(size.nvlink),
        "CPU": f"{size.vcpus} vCPUs, {size.architecture}",
        "host memory": f"{size.host_memory_gib} GiB" if size.host_memory_gib else "",
        "/dev/shm": f"at least {shared_memory.mib(need)} for {size.processes} ranks (resources.shm_size)",
        "all-reduce": f"bus bandwidth of at least {', '.join(expected)}, by Azure's health check" if expected else "",
        "retired": str(size.retired or ""),
    }
    return [(name, value) for name, value in rows.items() if value]


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, header_style="bright_black", padding=(0, 1, 0, 0), show_edge=False, pad_edge=False
    )
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column[0] == ">" else "left", overflow="fold")
    return table


def _infiniband(size: Size) -> str:
    if not size.infiniband:
        return _or_dash(None)
    if size.infiniband_ports is None:
        return "yes"
    return f"{size.infiniband_ports} x {size.infiniband_gbit_s} Gb/s"


def _yes(flag: bool | None) -> str:
    return {True: "yes", False: "no", None: _or_dash(None)}[flag]


def _or_dash(value: object) -> str:
    from allranks.runs.formatting import NOTHING

    return NOTHING if value is None else str(value)
