"""Start ranks of a benchmark with torchrun, and compare loops that took turns in them."""

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.timing import run

BIN = Path(sys.executable).parent
PROGRAMS = Path(__file__).resolve().parents[1] / "ranks"
RANKS = 2


def measured(program: str, *arguments: str) -> Any:
    """Run a program of ranks/ on two ranks with a core each, and return the JSON object that it prints as a line. Raise
    RuntimeError if it fails."""
    launch = [str(BIN / "torchrun"), "--standalone", "--nproc-per-node", str(RANKS), str(PROGRAMS / program)]
    output = run([*launch, *arguments], OMP_NUM_THREADS="1")
    return json.loads(next(line for line in output.splitlines() if line.startswith('{"')))


def compared(ours: Sequence[float], peer: Sequence[float]) -> tuple[float, float]:
    """Return our time and the peer's of blocks that took turns: the median of the peer's, and that plus the typical
    difference to the peer's block of the same turn, so that other load on the machine affects both equally. Typical is
    the mean of the differences between the quartiles, which varies less than their median."""
    base = statistics.median(peer)
    differences = sorted(one - other for one, other in zip(ours, peer, strict=True))
    quarter = len(differences) // 4
    return base + statistics.mean(differences[quarter : len(differences) - quarter]), base
