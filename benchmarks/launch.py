"""Seconds from a launch to the end of the last rank's first all-reduce: allranks and torchrun, measured in turn.

Both run the same training file. It imports torch, calls an all-reduce over gloo, and writes the time at its end to a
file. Each rank has one OpenMP thread. A layout is instances x processes per instance.

    ours      from the call of the engine's run(plan), in a process that has already imported the engine, like a
              notebook or the command; on the kind of instances that `allranks run` chooses by default here
    torchrun  from the start of its agents, one per instance, side by side on loopback; it includes the agents' import
              of torch, because a user of torchrun waits for it too

In the figures with a goal, both sides only start ranks, because torchrun has no tracking. Two more figures are for
information: the same launch of a step with an MLflow run, which needs MLflow imported, and the whole command
`allranks run` of a command job, which imports azure-ai-ml first and is tracked too.
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
"""Number of measurements of each layout."""

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
    """The state that the measurements share.

    training: the file that ranks run, in the workspace, where a rack's instances can read it
    folders:  paths of new folders for the ranks' output
    """

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
        print(f"{_layout_text(layout)} ...", file=sys.stderr)
        ours, torchrun = medians(
            times,
            # A command that names no Python gets no MLflow run.
            partial(_ours, bench, layout, str(bench.training)),
            partial(_torchrun, bench, layout),
        )
        yield Figure(f"{_layout_text(layout)}, s (peer: torchrun)", ours, torchrun, GOAL, of="ratio")


def _tracked(bench: Bench) -> Iterator[Figure]:
    print(f"{_layout_text(TRACKED)}, tracked ...", file=sys.stderr)
    tracked, command, torchrun = medians(
        TRACKED_TIMES,
        partial(_ours, bench, TRACKED, f"python {bench.training}"),
        partial(_command, bench, TRACKED),
        partial(_torchrun, bench, TRACKED),
    )
    yield Figure(f"{_layout_text(TRACKED)}, tracked by MLflow, s (peer: torchrun)", tracked, torchrun)
    yield Figure(f"{_layout_text(TRACKED)}, the whole command, tracked, s (peer: torchrun)", command, torchrun)


def _layout_text(layout: Layout) -> str:
    return f"{layout.instance_count}x{layout.process_count_per_instance}"


def _ours(bench: Bench, layout: Layout, command: str) -> float:
    folder = _new_folder(bench)
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
    return _last_end(folder, layout) - started


def _command(bench: Bench, layout: Layout) -> float:
    folder = _new_folder(bench)
    job = folder.with_suffix(".yml")
    text = JOB.format(
        command=f"python {bench.training} {folder}",
        instances=layout.instance_count,
        processes=layout.process_count_per_instance,
    )
    job.write_text(text, encoding="utf-8")
    started = time.time()
    run([str(BIN / "allranks"), "run", str(job), "--folder", str(bench.workspace.root)])
    return _last_end(folder, layout) - started


def _torchrun(bench: Bench, layout: Layout) -> float:
    folder = _new_folder(bench)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # By default, gloo resolves this machine's hostname, which may fail.
    variables = environment(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    nodes, processes = str(layout.instance_count), str(layout.process_count_per_instance)
    agent = [str(BIN / "torchrun"), "--nnodes", nodes, "--nproc-per-node", processes]
    agent += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    commands = [
        [*agent, "--node-rank", str(rank), str(bench.training), str(folder)] for rank in range(layout.instance_count)
    ]
    with tempfile.TemporaryFile("w+") as output:
        started = time.time()
        agents = [subprocess.Popen(command, env=variables, stdout=output, stderr=output) for command in commands]
        codes = [process.wait() for process in agents]
        if any(codes):
            output.seek(0)
            raise RuntimeError(f"torchrun failed:\n{output.read()[-2000:]}")
    return _last_end(folder, layout) - started


def _new_folder(bench: Bench) -> Path:
    folder = next(bench.folders)
    folder.mkdir()
    return folder


def _last_end(folder: Path, layout: Layout) -> float:
    """Return the time at which the last rank ended its all-reduce."""
    times = [float((folder / str(rank)).read_text()) for rank in range(layout.world_size)]
    return max(times)


if __name__ == "__main__":
    main()
