"""`allranks doctor`: check which stacks work on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from allranks.local.doctor.launches import Launch
    from allranks.local.stacks import Stack


def doctor(
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start two ranks of each stack to test it.")] = True,
) -> None:
    """Check which stacks work on this machine.

    Also print how to install the others. A stack works if two of its ranks can communicate. Exit with 1 if an installed
    stack does not work.
    """
    from pathlib import Path

    from rich import box
    from rich.table import Table
    from rich.text import Text

    from allranks.cli.console import console
    from allranks.local.doctor.launches import FIRST

    out = console()
    _print_machine()
    table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", show_edge=False, pad_edge=False)
    for column in ("stack", "version", "works", "how to get it"):
        table.add_column(column)
    broken = []
    for launch in FIRST:
        stack = launch.stacks[0]
        version = stack.version(Path.cwd())
        if version is None:
            table.add_row(stack.name, "-", "", stack.install, style="bright_black")
            continue
        if not start:
            table.add_row(stack.name, version, "not tried", "")
            continue
        with out.status(f"starting two ranks of {stack.name}"):
            wrong = _try_out(launch, Path.cwd())
        table.add_row(stack.name, version, Text("no", "red") if wrong else Text("yes", "green"), "")
        if wrong:
            broken.append((stack, wrong))
    out.print(table)
    _print_broken(broken)


def _print_machine() -> None:
    import os

    from allranks.cli.console import console
    from allranks.local import gpus, preview

    kind = preview.kind_of("auto").name
    known = {
        "rack": "rack: each has its own network, hostname and /tmp",
        "loopback": "loopback: addresses on 127.0.0.0/8",
    }
    devices = len(gpus.found(os.environ))
    console().print(f"instances  {known[kind]}\nGPUs       {devices or 'none; training runs on the CPU'}\n")


def _try_out(launch: Launch, folder: Path) -> str:
    import tempfile
    from pathlib import Path

    from allranks.local.doctor.launches import TWO_RANKS
    from allranks.local.doctor.trial import try_out
    from allranks.runs.workspace import Workspace

    layout = next(layout for layout in TWO_RANKS if layout in launch.layouts)
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as workspace:
        return try_out(launch, layout, "auto", Workspace(Path(workspace)), folder)


def _print_broken(broken: list[tuple[Stack, str]]) -> None:
    from allranks.cli.console import errors

    for stack, wrong in broken:
        errors().print(f"\n{stack.name} does not work: {wrong}\n  try: {stack.install}", markup=False)
    if broken:
        raise typer.Exit(1)
