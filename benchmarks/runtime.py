"""The runtime's overhead per training step: the time of a step under our loop, and under a loop written by hand.

Every 10 steps, both compute the mean loss over the ranks: ours logs it, the one written by hand keeps it. Ours also
counts the batches for a resume, and is ready for an eviction; no checkpoint is due. The loop written by hand trains
with torch's DistributedDataParallel or fully_shard, DeepSpeed's engine or Horovod's optimizer. For information, with
the small model: the same loop without the mean, and under ddp loops with Accelerate and Lightning Fabric, which train
with DistributedDataParallel too. See ranks/loops.py.

Two ranks with a core each train on the same data in one process group. Where the process may, as root may, its threads
that communicate preempt the one that computes; elsewhere a step of a small model varies by half. The loops take turns,
in an order that changes. Our loop and the peer's train the same model, which our strategy has prepared: of two copies
of a model in one process, one may be 10 % slower than the other for as long as the process lives, depending on where
their memory lies. Those of Accelerate and Fabric are copies.

The value of the peer is the median over its blocks of 10 steps in all launches. Ours is that plus the typical
difference to the peer's block of the same turn, so that other load on the machine affects both equally. The CPU time of
a step, on all threads of rank 0, is affected less by other load.

Peak memory is the resident memory of rank 0 in a training with one of the loops alone, by hand with a model that the
library has prepared.

RUNTIME_CASES=ddp-small,fsdp-large measures some of the cases, RUNTIME_BLOCKS=50 with so many blocks in a launch.
All cases take 20 minutes.
"""

import os
import sys
from importlib.util import find_spec
from typing import Any

from bench import torchrun
from bench.figures import Figure, finish

GOAL = 1.01

CASES = {
    "ddp-small": 160,
    "ddp-large": 12,
    "fsdp-small": 120,
    "fsdp-large": 12,
    "deepspeed-small": 120,
    "deepspeed-large": 12,
    "horovod-small": 160,
    "horovod-large": 12,
}
"""Strategies and models, with the number of blocks in a launch. The standard error of a ratio is some 0.3 % for a
small model, and 0.4 % for a large one."""

LAUNCHES = 5
PEER = "by hand"
OTHERS = {"ddp": ("accelerate", "fabric")}
"""Libraries that are measured too, by strategy."""

MEMORY_BLOCKS = 5


def main() -> None:
    names = os.environ.get("RUNTIME_CASES", ",".join(CASES)).split(",")
    figures = []
    for name in names:
        strategy, model = name.split("-")
        if strategy in ("deepspeed", "horovod") and find_spec(strategy) is None:
            print(f"no {name}: {strategy} is not installed", file=sys.stderr)
            continue
        blocks = int(os.environ.get("RUNTIME_BLOCKS", CASES[name]))
        others = ("without metrics", *OTHERS.get(strategy, ())) if model == "small" else ()
        labels = {"ours": "our loop", "without metrics": f"{PEER} without the mean loss"}
        times = _times(strategy, model, blocks, ["ours", PEER, *others])
        for loop in ("ours", *others):
            goal = GOAL if loop == "ours" else None
            by_clock = (_milliseconds(times[loop], 0), _milliseconds(times[PEER], 0))
            by_cpu = (_milliseconds(times[loop], 1), _milliseconds(times[PEER], 1))
            label, peer = labels.get(loop, loop), f"(peer: {strategy} {PEER})"
            figures.append(_figure(f"{model} model, {label}, ms a step {peer}", *by_clock, goal))
            figures.append(_figure(f"{model} model, {label}, CPU ms a step {peer}", *by_cpu, goal=None))
        ours, peers = (_measure(strategy, model, MEMORY_BLOCKS, loop)["megabytes"] for loop in ("ours", strategy))
        figures.append(Figure(f"{model} model, our loop, peak MB of a rank (peer: {strategy} {PEER})", ours, peers))
    finish("The runtime's overhead per training step", figures)


def _times(strategy: str, model: str, blocks: int, loops: list[str]) -> dict[str, list[list[float]]]:
    """Return the times of the loops' blocks in all launches, each of which makes the models in another order."""
    times: dict[str, list[list[float]]] = {loop: [] for loop in loops}
    for number in range(LAUNCHES):
        first = number % len(loops)
        measured = _measure(strategy, model, blocks, *loops[first:], *loops[:first])["times"]
        for loop in loops:
            times[loop] += measured[loop]
    return times


def _measure(strategy: str, model: str, blocks: int, *loops: str) -> Any:
    """Return what training_steps.py measures with these loops in turn."""
    print(f"{strategy}, {model} model: {', '.join(loops)} ...", file=sys.stderr)
    return torchrun.measured("training_steps.py", strategy, model, str(blocks), *loops)


def _milliseconds(times: list[list[float]], column: int) -> list[float]:
    return [1000 * row[column] for row in times]


def _figure(name: str, ours: list[float], peer: list[float], goal: float | None) -> Figure:
    """Return a figure of blocks that took turns."""
    return Figure(name, *torchrun.compared(ours, peer), goal, of="ratio")


if __name__ == "__main__":
    main()
