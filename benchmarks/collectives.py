"""Compare the component benchmark_collectives with a plain loop over torch.distributed. Their times must be equal.

Both run in turn in the same two processes, over gloo on loopback, in many short rounds with alternating order. A time
is the duration of a call on the slowest rank, in microseconds. A figure is the lowest decile over the rounds, because
other load on the machine affects both and makes a round slower, never faster.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.figures import Figure, finish
from bench.timing import run

HERE = Path(__file__).resolve().parent
SIZES = {
    "all_reduce": [1 << 16, 1 << 20, 1 << 22],
    "all_gather": [1 << 20],
    "reduce_scatter": [1 << 20],
    "broadcast": [1 << 20],
}
"""Message sizes in bytes, by collective."""

RANKS = 2
ROUNDS = 100
CALLS = 10
GOAL = 0.1


def main() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command += ["--nproc-per-node", str(RANKS), str(HERE / "ranks" / "plain_loop.py")]
    command += [json.dumps(SIZES), str(ROUNDS), str(CALLS)]
    code = HERE.parent / "components" / "diagnosis/benchmark_collectives"
    output = run(command, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", PYTHONPATH=str(code))
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    finish("A call of a collective", [figure for line in lines for figure in _figures(line)])


def _figures(measured: dict[str, Any]) -> Iterator[Figure]:
    name = f"{measured['collective']} of {measured['size'] >> 10} KiB"
    ours, plain = (statistics.quantiles(times, n=10)[0] * 1e6 for times in zip(*measured["rounds"], strict=True))
    yield Figure(f"{name}, us (peer: a plain loop)", ours, plain)
    yield Figure(f"{name}, how far the ratio is from 1", abs(ours / plain - 1), goal=GOAL)


if __name__ == "__main__":
    main()
