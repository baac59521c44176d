"""How long a user waits before anything happens.

allranks --help
    Wall time and CPU time of the process, medians of 10. Peer: `torchrun --help`, the other command that starts ranks.

import allranks.runtime
    What it adds to a training script that has imported torch, median of 10 fresh processes, timed inside them. Peer:
    the import of torch in the same processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import cpu_seconds, medians, run, seconds

BIN = Path(sys.executable).parent
TIMES = 10

IMPORTS = """
import time
start = time.perf_counter()
import torch
middle = time.perf_counter()
import allranks.runtime
print(middle - start, time.perf_counter() - middle)
"""


def main() -> None:
    help_, torchrun_help = [str(BIN / "allranks"), "--help"], [str(BIN / "torchrun"), "--help"]
    ours, torchrun, our_cpu, torchrun_cpu = medians(
        TIMES,
        lambda: seconds(help_),
        lambda: seconds(torchrun_help),
        lambda: cpu_seconds(help_),
        lambda: cpu_seconds(torchrun_help),
    )
    torch, runtime = _import_seconds()
    finish(
        "What a user waits for before anything happens",
        [
            Figure("allranks --help, s (peer: torchrun --help)", ours, torchrun, goal=0.12),
            Figure("allranks --help, CPU s (peer: torchrun --help)", our_cpu, torchrun_cpu, goal=0.12),
            Figure("import allranks.runtime after torch, ms (peer: import torch)", runtime * 1e3, torch * 1e3, goal=30),
        ],
    )


def _import_seconds() -> tuple[float, float]:
    """Medians: torch, and then allranks.runtime."""
    latest: list[float] = []

    def torch() -> float:
        latest[:] = map(float, run([sys.executable, "-c", IMPORTS]).split())
        return latest[0]

    first, second = medians(TIMES, torch, lambda: latest[1])
    return first, second


if __name__ == "__main__":
    main()
