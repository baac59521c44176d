"""Start-up times of the command and of the runtime.

allranks --help
    Wall time and CPU time of the process, medians of 10. Peer: `torchrun --help`, which also starts ranks.

import allranks.runtime
    Time that it adds to a training script that has imported torch, measured inside the process, median of 10 new
    processes. Peer: the import of torch in the same processes.
"""

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
            Figure("allranks --help, s (peer: torchrun --help)", ours, torchrun, goal=0.1),
            Figure("allranks --help, CPU s (peer: torchrun --help)", our_cpu, torchrun_cpu, goal=0.1),
            Figure("import allranks.runtime after torch, ms (peer: import torch)", runtime * 1e3, torch * 1e3, goal=30),
        ],
    )


def _import_seconds() -> tuple[float, float]:
    """Return the median import times of torch, and of allranks.runtime after it."""
    latest: list[float] = []

    def torch() -> float:
        latest[:] = map(float, run([sys.executable, "-c", IMPORTS]).split())
        return latest[0]

    torch_seconds, runtime_seconds = medians(TIMES, torch, lambda: latest[1])
    return torch_seconds, runtime_seconds


if __name__ == "__main__":
    main()
