"""Seconds from a launch until the last rank has left its first all-reduce: ours and torchrun's, taken in turn.

The training is one and the same file: torch, gloo, an all-reduce, and a file with the time at which that was over. It
runs with one OpenMP thread a rank. A layout is instances x processes on each.

    ours      from the call of the engine's run(plan), in a process that has imported it, as a notebook or the command
              has by then; on the kind of instances that `allranks run` chooses by itself here
    torchrun  from the start of its agents, one an instance, side by side on loopback; that they import torch is part of
              it, since whoever starts ranks by it waits for that

The figures with a goal start ranks and nothing else, on both sides: torchrun tracks nothing. For information follow the
same launch of a step that the engine gives an MLflow run, whose start needs MLflow imported, and the whole command
`allranks run` of a command job, which imports azure-ai-ml first and is tracked as well.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import environment, medians, run

from allranks.contract.layout import Layout
from allranks.contract.pytorch import PyTorch
from allranks.local import engine
from allranks.plan.graph import Graph, Plan, Step
from allranks.runs.records import Status
from allranks.runs.workspace import Workspace

BIN = Path(sys.executable).parent
LAYOUTS = {Layout(1, 2): 5, Layout(2, 2): 3, Layout(2, 8): 3}
"""How often each is measured."""

TRACKED = Layout(2, 2)
TRACKED_TIMES = 2
GOAL = 1.1

TRAINING = f"""#!{sys.executable}
import os, sys, time
import torch
import torch.distributed as distributed

distributed.init_process_group("gloo")
distributed.all_reduce(torch.ones(1))
over = time.time()
with open(os.path.join(sys.argv[1], os.environ["RANK"]), "w") as file:
    file.write(repr(over))
distributed.barrier()
distributed.destroy_process_group()
"""

JOB = """
type: command
command: {command}
environment: azureml:any:1
environment_variables: {{OMP_NUM_THREADS: "1"}}
resources: {{instance_count: {instances}}}
distribution: {{type: pytorch, process_count_per_instance: {processes}}}
"""


@dataclass(frozen=True)
class Bench:
    """training: the file that ranks run, in the workspace, since that is where a rack's instances see it; folders: new
    ones, into which ranks write."""

    workspace: Workspace
    training: Path
    folders: Iterator[Path]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-launch-") as parent:
        workspace = Workspace(Path(parent))
        training = workspace.root / "all_reduce.py"
        training.write_text(TRAINING, encoding="utf-8")
        training.chmod(0o755)
        bench = Bench(workspace, training, (workspace.root / f"times_{number}" for number in itertools.count()))
        figures = [*_untracked(bench), *_tracked(bench)]
    finish("From a launch to the end of the last rank's first all-reduce", figures)


def _untracked(bench: Bench) -> Iterator[Figure]:
    for layout, times in LAYOUTS.items():
        print(f"{_text(layout)} ...", file=sys.stderr)
        ours, torchrun = medians(
            # A command that names no Python gets no MLflow run.
            times,
            partial(_ours, bench, layout, str(bench.training)),
            partial(_torchrun, bench, layout),
        )
        yield Figure(f"{_text(layout)}, s (peer: torchrun)", ours, torchrun, GOAL, of="ratio")


def _tracked(bench: Bench) -> Iterator[Figure]:
    print(f"{_text(TRACKED)}, tracked ...", file=sys.stderr)
    tracked, command, torchrun = medians(
        TRACKED_TIMES,
        partial(_ours, bench, TRACKED, f"python {bench.training}"),
        partial(_command, bench, TRACKED),
        partial(_torchrun, bench, TRACKED),
    )
    yield Figure(f"{_text(TRACKED)}, tracked by MLflow, s (peer: torchrun)", tracked, torchrun)
    yield Figure(f"{_text(TRACKED)}, the whole command, tracked, s (peer: torchrun)", command, torchrun)


def _text(layout: Layout) -> str:
    return f"{layout.instance_count}x{layout.process_count_per_instance}"


def _ours(bench: Bench, layout: Layout, command: str) -> float:
    folder = _new(bench)
    step = Step(
        "train",
        f"{command} {folder}",
        distribution=PyTorch(layout.process_count_per_instance),
        instance_count=layout.instance_count,
        environment_variables={"OMP_NUM_THREADS": "1"},
    )
    started = time.time()
    record = engine.run(Plan("launch", Graph((step,))), bench.workspace, engine.Options())
    if record.status is not Status.COMPLETED:
        raise RuntimeError(f"the run ended {record.status}: {record.verdict}")
    return _last(folder, layout) - started


def _command(bench: Bench, layout: Layout) -> float:
    folder = _new(bench)
    job = folder.with_suffix(".yml")
    text = JOB.format(
        command=f"python {bench.training} {folder}",
        instances=layout.instance_count,
        processes=layout.process_count_per_instance,
    )
    job.write_text(text, encoding="utf-8")
    started = time.time()
    run([str(BIN / "allranks"), "run", str(job), "--folder", str(bench.workspace.root)])
    return _last(folder, layout) - started


def _torchrun(bench: Bench, layout: Layout) -> float:
    folder = _new(bench)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # gloo otherwise resolves this machine's hostname, which not every machine can.
    variables = environment(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    nodes, processes = str(layout.instance_count), str(layout.process_count_per_instance)
    agent = [str(BIN / "torchrun"), "--nnodes", nodes, "--nproc-per-node", processes]
    agent += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    commands = [
        [*agent, "--node-rank", str(rank), str(bench.training), str(folder)] for rank in range(layout.instance_count)
    ]
    with tempfile.TemporaryFile("w+") as said:
        started = time.time()
        agents = [subprocess.Popen(command, env=variables, stdout=said, stderr=said) for command in commands]
        codes = [process.wait() for process in agents]
        if any(codes):
            said.seek(0)
            raise RuntimeError(f"torchrun failed:\n{said.read()[-2000:]}")
    return _last(folder, layout) - started


def _new(bench: Bench) -> Path:
    folder = next(bench.folders)
    folder.mkdir()
    return folder


def _last(folder: Path, layout: Layout) -> float:
    """When the last rank was done."""
    times = [float((folder / str(rank)).read_text()) for rank in range(layout.world_size)]
    return max(times)


if __name__ == "__main__":
    main()
