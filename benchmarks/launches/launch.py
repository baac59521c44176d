"""A launch of a training file, and what its ranks wrote."""

import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from allranks.contract.layout import Layout

RANKS = Path(__file__).parent / "ranks"


@dataclass(frozen=True)
class Reached:
    """How far a launch came.

    seconds: from its start until the last rank left its first all-reduce
    memory:  the mean over the ranks of their share of memory (PSS), in 10^6 bytes
    """

    seconds: float
    memory: float


Launcher: TypeAlias = Callable[[Path, str, Layout, Path], float]
"""Starts ranks and waits for their end: (working folder with the training files, file, layout, folder for what the
ranks write) -> the time of the start, in seconds since the epoch. Raises RuntimeError if it fails."""


def launch(launcher: Launcher, file: str, layout: Layout, workspace: Path) -> Reached:
    """Launch a training file of `ranks/` and return how far it came. workspace: every instance can read it"""
    code = workspace / "code"
    if not code.exists():
        shutil.copytree(RANKS, code, ignore=shutil.ignore_patterns("__pycache__"))
    folder = Path(tempfile.mkdtemp(prefix="reached-", dir=workspace))
    started = launcher(code, file, layout, folder)
    written = [json.loads((folder / str(rank)).read_text()) for rank in range(layout.world_size)]
    return Reached(max(time for time, _ in written) - started, statistics.mean(memory for _, memory in written) / 1e6)


def in_turn(times: int, launches: Sequence[Callable[[], Reached]]) -> list[Reached]:
    """Return the medians of launches that are made `times` times in turn, after one round that does not count."""
    rounds = [[start() for start in launches] for _ in range(times + 1)][1:]
    return [
        Reached(
            statistics.median(reached.seconds for reached in one), statistics.median(reached.memory for reached in one)
        )
        for one in zip(*rounds, strict=True)
    ]


def layout_text(layout: Layout) -> str:
    """Return a layout as instances x processes per instance, such as 2x8."""
    return f"{layout.instance_count}x{layout.process_count_per_instance}"
