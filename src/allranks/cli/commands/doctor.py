"""`allranks doctor`: check which stacks work on this machine, or show the Azure sizes and their hardware."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from allranks.cli.console import console, errors, to_json
from allranks.cli.options import JsonOption, argument, option
from allranks.cli.views import table_of
from allranks.cli.views.sizes import print_size, print_sizes
from allranks.doctor import FIRST, TWO_RANKS, Launch, run_trial
from allranks.errors import InputError, Problem
from allranks.hardware import nccl, traps
from allranks.hardware.cuda import has_bfloat16, releases_of
from allranks.hardware.nccl import GRAPH_FAMILIES, TOPOLOGY_FOLDER, NetworkVariable, Topology
from allranks.hardware.network import Device
from allranks.hardware.sizes import Size, find
from allranks.hardware.sizes import sizes as all_sizes
from allranks.local import gpus, preview
from allranks.workspace import Workspace


@dataclass(frozen=True)
class _StackState:
    """The state of one stack on this machine.

    version: None if it is not installed
    works:   None if it was not tried
    wrong:   why it does not work
    install: the command that installs it
    """

    stack: str
    version: str | None
    works: bool | None
    wrong: str
    install: str


def doctor(
    size: Annotated[
        str | None, argument("SIZE", "Azure size to describe instead of this machine, with or without Standard_.")
    ] = None,
    sizes: Annotated[
        bool, option("--sizes", "List the Azure sizes with GPUs and their hardware, instead of this machine.")
    ] = False,
    gpu: Annotated[str | None, option("--gpu", "List only sizes with this GPU, such as A100.")] = None,
    infiniband: Annotated[
        bool | None, option("--infiniband/--no-infiniband", "List only sizes with InfiniBand, or without.")
    ] = None,
    retired: Annotated[bool, option("--retired", "Also list sizes that Azure has retired.")] = False,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start two ranks of each stack to test it.")] = True,
    json: JsonOption = False,
) -> None:
    """Check which stacks work on this machine, or show the Azure sizes and their hardware.

    Also print how to install the other stacks. A stack works if two of its ranks can communicate. Exit with 1 if an
    installed stack does not work. For a size: print its processes, variables and warnings, each with its source.

    For example: allranks doctor --sizes --gpu A100 --infiniband
    """
    if size is not None:
        filters = [name for name, is_given in (("--sizes", sizes), ("--gpu", gpu), ("--retired", retired)) if is_given]
        if filters:
            fix = f"allranks doctor {size}, or allranks doctor --sizes"
            raise InputError(Problem(filters[0], f"it is given together with the size {size}", "one of them", fix))
        _print_size(size, infiniband is True, json)
    elif sizes or gpu or infiniband is not None or retired:
        _print_sizes(gpu, infiniband, retired, json)
    else:
        _check_stacks(start, json)


def _check_stacks(start: bool, json: bool) -> None:
    instances = preview.kind_of("auto").name
    number = len(gpus.find(os.environ))
    out = console()
    if not json:
        out.print(f"instances  {instances}: {_INSTANCES[instances]}")
        out.print(f"GPUs       {number or 'none; training runs on the CPU'}\n")
    findings = []
    for launch in FIRST:
        with contextlib.nullcontext() if json else out.status(f"starting two ranks of {launch.stacks[0].name}"):
            findings.append(_finding(launch, start, Path.cwd()))
    if json:
        print(to_json({"instances": instances, "gpus": number, "stacks": findings}))
    else:
        _print(findings)
    if any(finding.works is False for finding in findings):
        raise typer.Exit(1)


_INSTANCES = {"rack": "each has its own network, hostname and /tmp", "loopback": "addresses on 127.0.0.0/8"}


def _finding(launch: Launch, start: bool, folder: Path) -> _StackState:
    stack = launch.stacks[0]
    version = stack.version(folder)
    if version is None or not start:
        return _StackState(stack.name, version, None, "", stack.install)
    layout = next(layout for layout in TWO_RANKS if layout in launch.layouts)
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as workspace:
        wrong = run_trial(launch, layout, "auto", Workspace(Path(workspace)), folder)
    return _StackState(stack.name, version, not wrong, wrong, stack.install)


def _print(findings: Sequence[_StackState]) -> None:
    from rich.text import Text

    table = table_of("stack", "version", "works", "how to get it")
    answers = {None: Text("not tried"), True: Text("yes", "green"), False: Text("no", "red")}
    for finding in findings:
        if finding.version is None:
            table.add_row(finding.stack, "-", "", finding.install, style="bright_black")
        else:
            table.add_row(finding.stack, finding.version, answers[finding.works], "")
    console().print(table)
    for finding in findings:
        if finding.wrong:
            text = f"\n{finding.stack} does not work: {finding.wrong}\n  try: {finding.install}"
            errors().print(text, markup=False)


def _print_size(name: str, wants_infiniband: bool, json: bool) -> None:
    size = find(name, where=f"size {name}")
    settings, warnings = _settings(size), list(traps.of_size(size, date.today(), wants_infiniband=wants_infiniband))
    if json:
        print(to_json({**_row(size), "settings": list(settings), "warnings": warnings}))
    else:
        print_size(console(), size, settings, warnings)


def _print_sizes(gpu: str | None, infiniband: bool | None, retired: bool, json: bool) -> None:
    today = date.today()
    matches = _matching(gpu, infiniband, retired, today)
    if json:
        print(to_json([_row(size) for size in matches]))
    else:
        print_sizes(console(), matches, today)


def _matching(gpu: str | None, infiniband: bool | None, retired: bool, today: date) -> list[Size]:
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
