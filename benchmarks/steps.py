"""The overhead of a step in milliseconds, and its memory: allranks, a shell, kfp.local and Metaflow.

A step runs `true`. Its cost is (seconds of a run of N steps - seconds of a run of one step) / (N - 1). Each run has a
new process and folder, and only its execution is timed: the pipeline is already built and compiled, and the fixed cost
of a run cancels out. N is 100 for allranks and the shell, and 20 for the other peers, whose steps take long enough. A
chain is N steps one after another, a fan N independent steps. benchmarks/chains/ has the peers' steps and settings.

The shell is `/bin/sh -c true`, started N times as a subprocess. It is what a step cannot do without, so the goals are
for what allranks adds to it. The runs of allranks and the shell alternate. The figures beside kfp.local and Metaflow
are whole costs, which include the start of `true`.

The first figures are for the kind of instances that `allranks run` chooses by default on this machine, the next for
loopback. Peak memory is that of the largest process of the chain's run (ru_maxrss). The last figure, for information,
is the time that azure-ai-ml takes to compile a step of such a chain beforehand.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import peers
from bench.figures import Figure, finish
from bench.timing import environment, run

CHAINS = Path(__file__).resolve().parent / "chains"
SHAPES = ("chain", "fan")
GOALS_MS = {"rack": 15.0, "loopback": 9.0}
"""Of what a step adds to the start of `true` from a shell."""

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
    """A tool that runs steps.

    script: in benchmarks/chains/; its arguments are shape, number of steps, folder, and `more`
    count:  number of steps of the run that is compared with a run of one step
    times:  number of comparisons
    """

    python: str
    script: str
    more: tuple[str, ...] = ()
    count: int = 20
    times: int = 3


@dataclass(frozen=True)
class Run:
    """A run of a script. said: the words it printed, the seconds first; mib: peak memory of its largest process."""

    said: tuple[str, ...]
    mib: float

    @property
    def seconds(self) -> float:
        return float(self.said[0])


@dataclass(frozen=True)
class Cost:
    """Milliseconds per step, MiB of the largest process of a run, and the kind of instances that the steps ran on."""

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
    shell, auto, loopback = _costs(
        {
            "shell": Engine(sys.executable, "shell.py", count=100, times=5),
            **{kind: Engine(sys.executable, "ours.py", (kind,), count=100, times=5) for kind in ("auto", "loopback")},
        },
        folders,
    ).values()
    peer_costs: dict[str, dict[str, Cost]] = {}
    if (python := peers.python(peers.PIPELINES)) is None:
        print("no other peer is available", file=sys.stderr)
    else:
        for name, script in (("kfp.local", "kfp_local.py"), ("Metaflow", "metaflow_local.py")):
            try:
                peer_costs |= _costs({name: Engine(python, script)}, folders)
            except RuntimeError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
    for ours in (auto, loopback):
        for shape in SHAPES:
            added = ours[shape].ms - shell[shape].ms
            place = ours[shape].place
            text = f"{shape} of 100, {place}"
            yield Figure(
                f"{text}, ms a step added to a shell's (peer: the shell's)", added, shell[shape].ms, GOALS_MS[place]
            )
            for name, costs in peer_costs.items():
                yield Figure(f"{text}, ms a step (peer: {name})", ours[shape].ms, costs[shape].ms)
    for name, costs in peer_costs.items():
        yield Figure(f"peak memory of the chain, MiB (peer: {name})", auto["chain"].mib, costs["chain"].mib)
    if not peer_costs:
        yield Figure("peak memory of the chain, MiB", auto["chain"].mib)


def _costs(engines: Mapping[str, Engine], folders: Iterator[str]) -> dict[str, dict[str, Cost]]:
    """Return the costs by engine and shape. The runs of the engines alternate, so that other load on the machine
    affects all of them. Raise RuntimeError if an engine fails to run its steps."""
    costs: dict[str, dict[str, Cost]] = {name: {} for name in engines}
    for shape in SHAPES:
        single_runs: dict[str, list[Run]] = {name: [] for name in engines}
        full_runs: dict[str, list[Run]] = {name: [] for name in engines}
        for _ in range(max(engine.times for engine in engines.values())):
            for name, engine in engines.items():
                single_runs[name].append(_run(engine, shape, 1, next(folders)))
                full_runs[name].append(_run(engine, shape, engine.count, next(folders)))
        for name, engine in engines.items():
            single, full = (statistics.median(run.seconds for run in runs[name]) for runs in (single_runs, full_runs))
            mib = statistics.median(run.mib for run in full_runs[name])
            cost = Cost((full - single) / (engine.count - 1) * 1e3, mib, full_runs[name][0].said[-1])
            print(f"{name}, {shape}: {cost.ms:.1f} ms a step, {cost.mib:.0f} MiB", file=sys.stderr)
            costs[name][shape] = cost
    return costs


def _run(engine: Engine, shape: str, count: int, folder: str) -> Run:
    command = [engine.python, str(CHAINS / engine.script), shape, str(count), folder, *engine.more]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment(), stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if status:
            raise RuntimeError(f"it ended with {process.returncode}: {_last_line(errors.readlines())}")
        return Run(tuple(output.read().split()), usage.ru_maxrss / 1024)


def _last_line(lines: Sequence[str]) -> str:
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
