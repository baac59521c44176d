"""Print the environment of the ranks of a step: shared variables once, then those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.contract.launch import Process
from allranks.runs.formatting import NOTHING, plain

_LONG = 24


@dataclass(frozen=True)
class RankVariables:
    """shared: variables with the same value on all ranks. own: the others, one value per rank, None if it is not
    set."""

    ranks: tuple[Process, ...]
    shared: Mapping[str, str]
    own: Mapping[str, tuple[str | None, ...]]


def rank_variables(environments: Sequence[tuple[Process, Mapping[str, str]]]) -> RankVariables:
    """Separate shared variables from those that differ. With one rank all are shared."""
    names = dict.fromkeys(name for _, environment in environments for name in environment)
    values = {name: tuple(environment.get(name) for _, environment in environments) for name in names}
    return RankVariables(
        ranks=tuple(process for process, _ in environments),
        shared={name: own[0] for name, own in values.items() if own[0] is not None and len(set(own)) == 1},
        own={name: own for name, own in values.items() if len(set(own)) > 1},
    )


def print_variables(console: Console, variables: RankVariables) -> None:
    """Print the shared variables as lines, then tables of those of each instance and each rank, as wide as the
    console."""
    ranks, instances = variables.ranks, _instances(variables.ranks)
    _title(console, "environment of its one process" if len(ranks) == 1 else f"environment of all {len(ranks)} ranks")
    names = max((len(name) for name in variables.shared), default=0)
    for name, value in sorted(variables.shared.items()):
        console.print(Text.assemble("    ", (f"{name:<{names}}", "cyan"), f"  {plain(value)}"), soft_wrap=True)
    by_instance = {
        name: tuple(values[place] for place in instances.values())
        for name, values in variables.own.items()
        if len(instances) < len(ranks) and _follows_instance(ranks, values)
    }
    _print_group(console, "instance", [str(instance) for instance in instances], by_instance)
    by_rank = {name: values for name, values in variables.own.items() if name not in by_instance}
    _print_group(console, "rank", [str(process.rank) for process in ranks], by_rank)


def _instances(ranks: Sequence[Process]) -> dict[int, int]:
    """Return the index of the first rank of each instance."""
    first_ranks: dict[int, int] = {}
    for place, process in enumerate(ranks):
        first_ranks.setdefault(process.instance_rank, place)
    return first_ranks


def _follows_instance(ranks: Sequence[Process], values: Sequence[str | None]) -> bool:
    pairs = {(process.instance_rank, value) for process, value in zip(ranks, values, strict=True)}
    return len(pairs) == len({instance for instance, _ in pairs})


def _print_group(console: Console, of: str, heads: Sequence[str], own: Mapping[str, Sequence[str | None]]) -> None:
    if not own:
        return
    _title(console, f"and of each {of}")
    short = {name: values for name, values in own.items() if _widest(values) <= _LONG}
    _print_tables(console, of, heads, short)
    for name, values in own.items():
        if name not in short:
            _print_list(console, of, heads, name, values)


def _title(console: Console, text: str) -> None:
    console.print(Text(f"  {text}", style="bright_black"))


def _widest(values: Sequence[str | None]) -> int:
    return max(len(value or NOTHING) for value in values)


def _print_tables(console: Console, of: str, heads: Sequence[str], own: Mapping[str, Sequence[str | None]]) -> None:
    """Print one table, or several if the console is too narrow for all columns."""
    if not own:
        return
    names = max(len(name) for name in own)
    column = max(*(_widest(values) for values in own.values()), *(len(head) for head in heads)) + 3
    block = max((console.width - 4 - names - 1) // column, 1)
    for start in range(0, len(heads), block):
        stop = min(start + block, len(heads))
        table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", show_edge=False, pad_edge=False)
        table.add_column(of, style="cyan", width=names, no_wrap=True)
        for head in heads[start:stop]:
            table.add_column(head, justify="right", min_width=column - 3, no_wrap=True)
        for name, values in own.items():
            table.add_row(name, *(_shown(value) for value in values[start:stop]))
        console.print(Padding(table, (0, 0, 0 if stop == len(heads) else 1, 4)))


def _print_list(console: Console, of: str, heads: Sequence[str], name: str, values: Sequence[str | None]) -> None:
    console.print(Text(f"    {name}", style="cyan"))
    width = max(len(head) for head in heads)
    for head, value in zip(heads, values, strict=True):
        line = Text.assemble((f"      {of} {head:<{width}}  ", "bright_black"), _shown(value))
        console.print(line, soft_wrap=True)


def _shown(value: str | None) -> str:
    return NOTHING if value is None else plain(value)
