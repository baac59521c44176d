"""From the start of a step declared with 3 instances x 2 processes, of which one instance never starts, to the end of
its run, with the engine's own bound.

The last instance of the rack is stopped (SIGSTOP) before the step is launched, so it is there, and never starts the
step's processes. Every launch runs the same program, which waits for ever. A figure counts if the run has failed with
the name of the instance, and no process is left; otherwise it is infinite.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from bench.figures import Figure, finish
from launches.stopped_instance import EARLIER, StoppedInstance, earlier_step

from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.tensorflow import TensorFlow
from allranks.history.records import RunRecord
from allranks.history.workspace import Workspace
from allranks.local import engine
from allranks.plan.graph import Graph, Plan, Step

GOAL = 30.0
"""Seconds."""

INSTANCES, PROCESSES = 3, 2
TORCHRUN = (
    f"torchrun --nnodes {INSTANCES} --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port $MASTER_PORT"
    f" --nproc-per-node {PROCESSES} --no-python sleep infinity"
)

LAUNCHES: Mapping[str, tuple[Distribution, str]] = {
    "pytorch": (PyTorch(PROCESSES), "sleep infinity"),
    "mpi": (Mpi(PROCESSES), "sleep infinity"),
    "torchrun": (PyTorch(1), TORCHRUN),
    "tensorflow": (TensorFlow(INSTANCES), "sleep infinity"),
    "ray": (Ray(), "sleep infinity"),
}
"""The distribution and the command of each launch. TensorFlow and Ray have one process on each instance."""

PROGRAMS = {"mpi": "mpirun", "ray": "ray"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(LAUNCHES), help="measure this launch alone")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory(prefix="allranks-missing-") as folder:
        workspace = Workspace(Path(folder))
        finish("From the launch with a missing instance to the end of the run", list(_figures(workspace, only)))


def _figures(workspace: Workspace, only: str | None) -> Iterator[Figure]:
    for launch in LAUNCHES:
        if only not in (None, launch):
            continue
        program = PROGRAMS.get(launch)
        if program and shutil.which(program, path=str(Path(sys.executable).parent)) is None:
            print(f"{launch}: this machine has no {program}", file=sys.stderr)
            continue
        yield Figure(f"one of 3 instances never starts, {launch}, s", _seconds(workspace, launch), goal=GOAL)


def _seconds(workspace: Workspace, launch: str) -> float:
    """Return the seconds until the run has ended; infinity if it ended for another reason, or left a process."""
    distribution, command = LAUNCHES[launch]
    step = Step(launch, command, distribution=distribution, instance_count=INSTANCES, after=(EARLIER,))
    plan = Plan("missing", Graph((earlier_step(INSTANCES), step)))
    options = engine.Options(instances="rack", track=False, force_rerun=True, cold=True, slots=INSTANCES * PROCESSES)
    record = engine.run(plan, workspace, options, StoppedInstance())
    ended = time.time()
    print(f"{launch}: {_reason(record, launch)}", file=sys.stderr)
    left = psutil.Process().children(recursive=True)
    if "instance 2 (node-2) did not start" not in _reason(record, launch) or left:
        return math.inf
    return ended - (record.step(launch).started or 0.0)


def _reason(record: RunRecord, launch: str) -> str:
    verdict = record.step(launch).verdict
    return "no verdict" if verdict is None else verdict.reason


if __name__ == "__main__":
    main()
