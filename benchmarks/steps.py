"""Milliseconds that a step costs beyond what it does, and the memory that takes: ours, kfp.local's, Metaflow's.

A step runs `true`. What one costs is (seconds of a run of N steps - seconds of a run of one step) / (N - 1), each run
in a fresh process and folder, timed around the execution alone: the pipeline is built and compiled by then, and what a
run costs once cancels out. The start of `true` itself is in it, for all three alike. N is 100 for us, 20 for the peers,
whose steps take long enough for that. A chain is N steps one after another, a fan N steps without an order. What the
peers' steps are, and with which settings they run: benchmarks/chains/.

The goals are for the kind of instances that `allranks run` chooses by itself on this machine; loopback follows. Peak
memory is that of the largest process of the chain's run (ru_maxrss). Last, for information: what azure-ai-ml takes to
compile a step of such a chain, before any of this.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.figures import Figure, finish
from bench.timing import environment, run

CHAINS = Path(__file__).resolve().parent / "chains"
SHAPES = ("chain", "fan")
GOAL_MS = 15.0

READ = """
import sys, time
from pathlib import Path
from allranks.plan.reader import read_plan
started = time.perf_counter()
plan = read_plan(sys.argv[1], {}, Path(sys.argv[2]))
print((time.perf_counter() - started) / len(plan.graph.nodes))
"""


@dataclass(frozen=True)
class Engine:
    """What runs steps.

    script: in benchmarks/chains/, given shape, number of steps, folder, and `more`
    count:  how many steps a run has that is compared with a run of one
    times:  how often that is done
    """

    python: str
    script: str
    more: tuple[str, ...] = ()
    count: int = 20
    times: int = 3


@dataclass(frozen=True)
class Run:
    """said: what it printed, the seconds first; mib: the memory of its largest process."""

    said: tuple[str, ...]
    mib: float

    @property
    def seconds(self) -> float:
        return float(self.said[0])


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a step, MiB of the largest process of a run, and where the steps ran."""

    ms: float
    mib: float
    place: str


def main() -> None:
    # Nothing is removed until the end: ext4 creates files slowly for some seconds after many were removed.
    with tempfile.TemporaryDirectory(prefix="allranks-steps-") as parent:
        folders = (str(Path(parent) / str(number)) for number in itertools.count())
        figures = list(_figures(folders))
        figures.append(Figure("azure-ai-ml reads a chain of 100 steps from YAML, ms a step", _read_ms(Path(parent))))
    finish("What a step costs", figures)


def _figures(folders: Iterator[str]) -> Iterator[Figure]:
    auto, loopback = (
        _costs(kind, Engine(sys.executable, "ours.py", (kind,), count=100, times=5), folders)
        for kind in ("auto", "loopback")
    )
    others = {}
    if (python := peers.python()) is None:
        print("no peer is available: what follows is ours alone", file=sys.stderr)
    else:
        for name, script in (("kfp.local", "kfp_local.py"), ("Metaflow", "metaflow_local.py")):
            try:
                others[name] = _costs(name, Engine(python, script), folders)
            except RuntimeError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
    for ours, goal in ((auto, GOAL_MS), (loopback, None)):
        for shape in SHAPES:
            text = f"{shape} of 100, {ours[shape].place}, ms a step"
            if not others:
                yield Figure(text, ours[shape].ms, goal=goal)
            for name, costs in others.items():
                yield Figure(f"{text} (peer: {name})", ours[shape].ms, costs[shape].ms, goal=goal)
    for name, costs in others.items():
        yield Figure(f"peak memory of the chain, MiB (peer: {name})", auto["chain"].mib, costs["chain"].mib)
    if not others:
        yield Figure("peak memory of the chain, MiB", auto["chain"].mib)


def _costs(name: str, engine: Engine, folders: Iterator[str]) -> dict[str, Cost]:
    """By shape. Raises RuntimeError where the engine does not run its steps."""
    costs = {}
    for shape in SHAPES:
        ones, manies = [], []
        for _ in range(engine.times):
            ones.append(_run(engine, shape, 1, next(folders)))
            manies.append(_run(engine, shape, engine.count, next(folders)))
        one, many = (statistics.median(run.seconds for run in runs) for runs in (ones, manies))
        cost = Cost(
            (many - one) / (engine.count - 1) * 1e3, statistics.median(run.mib for run in manies), manies[0].said[-1]
        )
        print(f"{name}, {shape}: {cost.ms:.1f} ms a step, {cost.mib:.0f} MiB", file=sys.stderr)
        costs[shape] = cost
    return costs


def _run(engine: Engine, shape: str, count: int, folder: str) -> Run:
    command = [engine.python, str(CHAINS / engine.script), shape, str(count), folder, *engine.more]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(command, env=environment(), stdout=output, stderr=complaints)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaints.seek(0)
        if status:
            raise RuntimeError(f"it ended with {process.returncode}: {_last(complaints.readlines())}")
        return Run(tuple(output.read().split()), usage.ru_maxrss / 1024)


def _last(lines: Sequence[str]) -> str:
    return lines[-1].strip() if lines else "without a word"


def _read_ms(folder: Path) -> float:
    lines = ["type: pipeline", "jobs:"]
    for number in range(100):
        lines += [f"  step_{number}:", "    type: command", "    command: 'true'", "    environment: azureml:any:1"]
    file = folder / "chain.yml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return float(run([sys.executable, "-c", READ, str(file), str(folder / "snapshots")])) * 1e3


if __name__ == "__main__":
    main()
