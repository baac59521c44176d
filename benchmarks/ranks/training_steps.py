"""A rank of benchmarks/runtime.py: runs several training loops in turn, in one process group.

    torchrun ... training_steps.py STRATEGY MODEL BLOCKS LOOP ...

A block is as many steps as there are from one logged step to the next. Rank 0 prints a line of JSON: for each loop the
seconds per step of each block, by the clock and of CPU time on all cores, and the peak memory of its process.
"""

import contextlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from loops import LOG_EVERY, Data, Loop, loops_of

from allranks import runtime

WARM_UP_BLOCKS = 3

TURNS = {"small": LOG_EVERY, "large": 1}
"""By model, the steps of a loop until it is the next one's turn. A block of a large model takes a second, within which
other load on the machine changes. With turns of one step of a small model, the mean of our loop, which does not wait
for it, would be computed during the next loop's turn."""


def train(ranks: runtime.Ranks) -> None:
    strategy, model, blocks, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    with tempfile.TemporaryDirectory() as folder:
        loops = loops_of(names, ranks, strategy, model, Data(), Path(folder))
        prefer_communication()
        # The same order on every rank. Shuffled, because a block is slower or faster after certain others.
        order, shuffle = list(names), random.Random(0).shuffle
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for number in range(WARM_UP_BLOCKS + blocks):
            seconds = dict.fromkeys(names, (0.0, 0.0))
            for _ in range(LOG_EVERY // TURNS[model]):
                shuffle(order)
                for name in order:
                    clock, cpu = turn(loops[name], TURNS[model])
                    seconds[name] = seconds[name][0] + clock / LOG_EVERY, seconds[name][1] + cpu / LOG_EVERY
            for name in names if number >= WARM_UP_BLOCKS else ():
                times[name].append(seconds[name])
        if ranks.is_main:
            print(json.dumps({"times": times, "megabytes": peak_memory()}), flush=True)
        ranks.barrier()


def use_one_core() -> None:
    """Give this rank a core of its own. The threads that it starts inherit it."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ["LOCAL_RANK"]) % len(cores)]})


def prefer_communication() -> None:
    """Let the threads that communicate preempt the one that computes, where this process may.

    A thread without a core of its own waits for the scheduler's next tick, which under Linux's lazy preemption is up
    to 4 ms away: longer than a step of the small models, and whether it happens in a step is chance.
    """
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != os.getpid():
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def turn(loop: Loop, steps: int) -> tuple[float, float]:
    """Run some steps. Return their seconds, and their CPU seconds."""
    cpu, clock = time.process_time(), time.perf_counter()
    for _ in range(steps):
        next(loop)
    return time.perf_counter() - clock, time.process_time() - cpu


def peak_memory() -> float:
    """Return this process's peak resident memory in 10^6 bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    use_one_core()
    runtime.main(train, strategy=sys.argv[1])
