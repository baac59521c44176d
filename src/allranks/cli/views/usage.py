"""The resource usage of the steps of a run, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from allranks.runs.formatting import count, plain
from allranks.runs.records import StepRecord
from allranks.runs.usage_text import cpu_of_ranks, gpu_memory_of_ranks, memory_of_ranks

_STEPS = 6
_SHORTEST = 1.0
"""Seconds of the shortest step that is listed."""


def usage_lines(steps: Sequence[StepRecord]) -> list[Text]:
    """Return a heading and a line per step: CPU and peak memory of a rank. Of many steps, those with the most CPU
    time."""
    rows = [step for step in steps if _is_listed(step)]
    chosen = sorted(rows, key=_cpu_seconds, reverse=True)[:_STEPS]
    names = {step.name for step in chosen}
    lines = []
    width = max((len(plain(step.name)) for step in chosen), default=0)
    for step in (step for step in rows if step.name in names):
        ranks = f"  {count(len(step.ranks), 'rank')}" if len(step.ranks) > 1 else ""
        facts = {
            "cpu": cpu_of_ranks(step, step.ended),
            "memory": memory_of_ranks(step),
            "gpu memory": gpu_memory_of_ranks(step),
        }
        line = Text.assemble(f"    {plain(step.name):<{width}}")
        for name, value in facts.items():
            if value:
                line.append(f"  {name} ", style="bright_black").append(value)
        lines.append(line.append(ranks, style="bright_black"))
    if len(rows) > len(chosen):
        lines.append(Text(f"    ... {count(len(rows) - len(chosen), 'step')} more", style="bright_black"))
    return [Text("  resources per rank: mean CPU, peak memory", style="bright_black"), *lines] if lines else []


def _is_listed(step: StepRecord) -> bool:
    if step.reused_from or step.started is None or step.ended is None:
        return False
    return step.ended - step.started >= _SHORTEST and any(rank.cpu_seconds is not None for rank in step.ranks)


def _cpu_seconds(step: StepRecord) -> float:
    return sum(rank.cpu_seconds or 0.0 for rank in step.ranks)
