"""500 jobs of 4 ranks over all stacks, with forked ranks: they end as jobs with cold ranks do.

Each kind of job runs once with `cold`, then all run in one run of the engine, one after another: every stack's launches
of `allranks doctor`, trainings by the runtime under each strategy, and scripts that end in every way a process can.
Compared are the ranks' states, exit codes and signals, the verdict, the metrics, and the logs: byte for byte, except
that those of DeepSpeed and of the stacks' own launches are compared without numbers: they print times and ports.

The figures are counts, whose goal is 0: jobs that ended otherwise, processes of the runs that are left, and file
descriptors that this process or a rank has more than at the beginning. For information: seconds of a forked job, over
those of a cold one.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, zip_longest
from pathlib import Path

from bench.figures import Figure, finish

from allranks.contract.layout import Layout
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.history.records import RunRecord, StepRecord
from allranks.history.workspace import Workspace
from allranks.local.boot import SOURCE
from allranks.local.doctor.launches import LAUNCHES
from allranks.local.doctor.trial import RANKS
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import digest
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step

PROJECT = Path(__file__).resolve().parents[1]
JOBS = Path(__file__).resolve().parent / "jobs"
COUNT = 500
STACK_ROUNDS = 3
"""How often each launch of a stack runs. Their own imports take seconds."""

ENDINGS = ("well", "in a thread", "by an exception", "with a code", "with a message", "by a signal", "at once")
STRATEGIES = ("ddp", "fsdp", "deepspeed")
_VARYING = re.compile(r"0x[0-9a-f]+|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|(?<=goo\.gle/debug)\w+")
"""Numbers, and a word that protobuf chooses at random in each process."""


@dataclass(frozen=True)
class Job:
    """exact: whether its logs are the same, byte for byte"""

    step: Step
    exact: bool


@dataclass(frozen=True)
class Ending:
    """How a job ended: by rank, its state, exit code, signal and log; its verdict; its metrics."""

    ranks: tuple[tuple[str, int | None, str | None, str], ...]
    verdict: str
    metrics: tuple[tuple[str, tuple[tuple[int, float], ...]], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help=f"number of forked jobs (default {COUNT})")
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory(prefix="allranks-jobs-") as folder:
        workspace = Workspace(Path(folder))
        imports = Path(folder) / "imports"
        imports.mkdir()
        (imports / "allranks").symlink_to(Path(SOURCE, "allranks"))
        own, stacks = list(_own(imports)), list(_stacks(imports))
        cold_seconds, cold_run = _run([*own, *stacks], workspace, cold=True)
        expected = {job.step.name: _ending(record, job) for job, record in _pairs([*own, *stacks], cold_run)}
        repeated = stacks * STACK_ROUNDS
        jobs = [*islice(cycle(own), max(count - len(repeated), len(own))), *repeated][:count]
        descriptors = len(os.listdir("/proc/self/fd"))
        seconds, forked_run = _run(jobs, workspace, cold=False)
        more_descriptors = len(os.listdir("/proc/self/fd")) - descriptors
        others = 0
        for job, record in _pairs(jobs, forked_run):
            if (ending := _ending(record, job)) != expected[job.step.name]:
                others += 1
                print(f"{record.name}: {_difference(expected[job.step.name], ending)}", file=sys.stderr)
        left = list(_processes_of(workspace))
    cold_job = cold_seconds / len(expected)
    finish(
        f"{len(jobs)} forked jobs of 4 ranks",
        [
            Figure("jobs that ended otherwise than cold ones", others, goal=0),
            Figure("processes left", len(left), goal=0),
            Figure("file descriptors more than before", more_descriptors, goal=0),
            Figure("a job, s (peer: the same with cold ranks)", seconds / len(jobs), cold_job),
        ],
    )


def _own(imports: Path) -> Iterator[Job]:
    pytorch, mpi = PyTorch(2), Mpi(2)
    for how in ENDINGS:
        yield Job(_step(f"ends_{how.replace(' ', '_')}", f"python ending.py {how}", pytorch, JOBS, imports), True)
    for strategy in STRATEGIES:
        step = _step(f"trains_{strategy}", f"python training.py {strategy}", pytorch, JOBS, imports)
        yield Job(step, strategy != "deepspeed")
    yield Job(_step("trains_ddp_mpi", "python training.py ddp", mpi, JOBS, imports), True)
    yield Job(_step("trains_in_a_shell", "set -e; python training.py ddp", pytorch, JOBS, imports), True)


def _stacks(imports: Path) -> Iterator[Job]:
    for launch in LAUNCHES:
        layout = next((layout for layout in (Layout(2, 2), Layout(2, 1)) if layout in launch.layouts), None)
        if layout is None or launch.missing(PROJECT) is not None:
            print(f"left out, since it is not installed: {launch.name}", file=sys.stderr)
            continue
        name = re.sub(r"\W+", "_", launch.name).lower()
        step = _step(name, launch.command_for(layout), launch.distribution(layout), RANKS, imports)
        environment = Environment(launch.stacks[0].environment)
        yield Job(Step(**{**vars(step), "environment": environment, "instance_count": layout.instance_count}), False)


def _step(name: str, command: str, distribution: PyTorch | Mpi, folder: Path, imports: Path) -> Step:
    return Step(
        name,
        command,
        code=Code(str(folder), digest.of_path(folder)),
        # The preflight's line has the time that it took.
        environment_variables={"PYTHONPATH": str(imports), "OMP_NUM_THREADS": "1", "ALLRANKS_PREFLIGHT": "0"},
        distribution=distribution,
        instance_count=2,
        timeout=240.0,
        deterministic=False,
    )


def _run(jobs: Sequence[Job], workspace: Workspace, *, cold: bool) -> tuple[float, RunRecord]:
    """Run the jobs one after another, and return the seconds that it took and the record."""
    steps = [Step(**{**vars(job.step), "name": _name(number, job)}) for number, job in enumerate(jobs)]
    plan = Plan("jobs", Graph(tuple(steps)), source=str(PROJECT / "jobs"), continue_on_step_failure=True)
    started = time.perf_counter()
    record = run(plan, workspace, Options(track=False, slots=1, force_rerun=True, cold=cold))
    return time.perf_counter() - started, record


def _name(number: int, job: Job) -> str:
    return f"job_{number}_{job.step.name}"


def _pairs(jobs: Sequence[Job], record: RunRecord) -> Iterator[tuple[Job, StepRecord]]:
    for number, job in enumerate(jobs):
        step = record.find(_name(number, job))
        assert step is not None
        yield job, step


def _ending(record: StepRecord, job: Job) -> Ending:
    ranks = tuple(
        (str(rank.status), rank.exit_code, rank.signal, _log(Path(rank.log), record, job)) for rank in record.ranks
    )
    curves = tuple(
        (name, tuple((point.step, point.value) for point in curve)) for name, curve in sorted(record.metrics.items())
    )
    return Ending(ranks, record.verdict.reason if record.verdict else "", curves)


def _log(path: Path, record: StepRecord, job: Job) -> str:
    text = path.read_text(encoding="utf-8", errors="replace").replace(record.folder, "FOLDER")
    # Warnings of libraries contain times, process ids and ports; the lines of several processes may change places.
    # Numbers that are aligned have more or fewer spaces before them.
    return text if job.exact else "\n".join(sorted(re.sub(" +", " ", _VARYING.sub("#", text)).splitlines()))


def _difference(expected: Ending, found: Ending) -> str:
    for rank, (one, other) in enumerate(zip_longest(expected.ranks, found.ranks)):
        if one != other:
            return f"rank {rank}: expected {one}, found {other}"
    return f"expected {expected.verdict!r} {expected.metrics}, found {found.verdict!r} {found.metrics}"


def _processes_of(workspace: Workspace) -> Iterator[int]:
    """Yield the processes that work in the workspace's folder or have it in their environment."""
    marker = os.fsencode(str(workspace.root))
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                content = Path(f"/proc/{entry}/environ").read_bytes() + Path(f"/proc/{entry}/cmdline").read_bytes()
                folder = os.fsencode(os.readlink(f"/proc/{entry}/cwd"))
            except OSError:  # it has ended, or is another user's
                continue
            if marker in content or folder.startswith(marker):
                yield int(entry)


if __name__ == "__main__":
    main()
