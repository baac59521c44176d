"""Run one cell of the table of faults with real processes, and judge the verdict."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import psutil
from fault_cells import Cell
from program_faults import ProgramFault

import bounded
from allranks.history import stored
from allranks.history.records import RunRecord, Status, StepRecord, Verdict
from allranks.local.attempt import lifecycle, monitor
from allranks.local.engine import run
from allranks.local.launchers import mpi
from allranks.local.options import Options
from allranks.plan import codec, digest
from allranks.plan.environment import Environment
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.verdict import folder
from allranks.workspace import Workspace
from allranks_lab.faults import injection
from allranks_lab.faults.faults import Fault

PROJECT = Path(__file__).resolve().parents[4]
SCRIPTS = Path(__file__).resolve().parent / "scripts"
PROGRAMS = Path(__file__).resolve().parent / "programs"
STALL = 5.0
LIMIT = 120.0
"""Seconds after which the step ends by its limit: no fault has to need them."""

OWN_LIMIT = 45.0
"""Seconds after which nobody is left that would end by itself, where the ranks wait a few seconds for each other."""

SLOW_LIMIT = 120.0
"""The same for DeepSpeed and Ray, which start slowly; Ray notices in some 30 s that an instance does not answer."""

NOTHING = "nothing was written after the fault"
"""The verdict over logs that cannot have one."""

_STRUCK = re.compile(r"fault at (\d+\.\d+)")


@dataclass(frozen=True)
class Outcome:
    """What came of a cell.

    found:     the verdict in one line
    right:     whether rank and cause are
    seconds:   from the fault to the end of the step
    left:      how many processes were left
    by_logs:   the verdict over the logs alone
    logs_right: whether its rank and cause are; None where there is nothing to judge, or NOTHING
    """

    found: str
    right: bool
    seconds: float
    left: int
    by_logs: str
    logs_right: bool | None


def run_cell(cell: Cell, workspace: Workspace, kind: str = "rack", *, stall: float = STALL) -> Outcome:
    """Run a cell, and judge its verdict; then the verdict over a copy of the logs."""
    with _adopting() as left:
        record = _run(cell, workspace, kind, stall)
    outcome = _outcome(cell, record.steps[0], _struck(cell, record), left())
    return outcome if cell.by_logs is None else _with_logs(outcome, cell.by_logs, record, workspace)


def run_together(cells: Sequence[Cell], workspace: Workspace, kind: str = "rack") -> dict[Cell, Outcome]:
    """Run cells of one stack whose scripts break themselves as the steps of one run, one after another, and judge their
    verdicts. What the stack imports is imported once."""
    steps = tuple(replace(step_of(cell), name=f"train_{number}") for number, cell in enumerate(cells))
    plan = Plan("faults", Graph(steps), source=str(PROJECT / "faults"))
    ranks = cells[0].layout.world_size
    with _adopting() as left:
        record = run(plan, workspace, Options(instances=kind, track=False, offline=True, stall=STALL, slots=ranks))
    count = left()
    ended = zip(cells, (record.step(step.name) for step in steps), strict=True)
    return {cell: _outcome(cell, step, min(_in_training(step), default=0.0), count) for cell, step in ended}


def _outcome(cell: Cell, step: StepRecord, struck: float, left: int) -> Outcome:
    """Return the outcome without the verdict over the logs. struck: when the fault happened"""
    ended = step.ended
    if cell.fault.kills == "engine" or ended is None:
        ended = time.time()
    right = is_right(cell, step.verdict, str(step.status))
    return Outcome(described(step.verdict, str(step.status)), right, round(ended - struck, 1), left, "", None)


@contextlib.contextmanager
def _adopting() -> Iterator[Callable[[], int]]:
    """Adopt the orphans of a run in the block. Yield a function that returns how many processes it has left."""
    others, counts = psutil.Process().children(recursive=True), list[int]()
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans of the run become children of this process
    try:
        yield counts.pop
        counts.append(processes_left(others))
    finally:
        ctypes.CDLL(None).prctl(36, 0)


def run_program(fault: ProgramFault, workspace: Workspace, kind: str = "rack") -> Outcome:
    """Run a program that breaks itself, and judge its verdict, or its notes where the step completes. The time is that
    of the whole step."""
    launch = fault.launch
    step = Step(
        "train",
        launch.command_for(fault.layout),
        code=Code(str(PROGRAMS), digest.of_path(PROGRAMS)),
        environment=Environment(launch.stacks[0].environment),
        environment_variables={"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
        distribution=launch.distribution(fault.layout),
        instance_count=fault.layout.instance_count,
        timeout=LIMIT,
        deterministic=False,
    )
    plan = Plan("faults", Graph((step,)), source=str(PROJECT / "faults"))
    options = Options(instances=kind, track=False, offline=True, stall=STALL, slots=8)
    with _adopting() as left:
        record = run(plan, workspace, options).steps[0]
    found = described(record.verdict, " ".join((str(record.status), *record.notes)))
    if fault.completes and record.status is Status.COMPLETED:
        right = any(re.search(fault.cause, note) for note in record.notes)
    else:
        verdict = record.verdict or Verdict("train", "")
        number = verdict.rank if verdict.worker is None else verdict.worker
        said = f"{verdict.reason} ({verdict.where}): {verdict.advice}"
        right = number in fault.ranks and re.search(fault.cause, said) is not None
    seconds = round((record.ended or 0.0) - (record.started or 0.0), 1)
    return Outcome(found, right, seconds, left(), "", None)


def with_own_logs(outcome: Outcome, cell: Cell, workspace: Workspace, kind: str = "rack") -> Outcome:
    """Return the outcome with the verdict over the logs of another run, in which the engine ends no rank: each writes
    until its own end, by its time-out or by the connection that it has lost, as on Azure ML. Open MPI ends the ranks
    that remain, as soon as it does by default."""
    if cell.by_logs is None:
        return replace(outcome, by_logs="", logs_right=None)
    limit = _own_limit(cell)
    times = [(lifecycle, "SETTLE", limit), (lifecycle, "RAISED", limit), (injection, "OTHERS", limit)]
    times.append((mpi, "GRACE", 1))

    def saving_logs(end_ranks: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def save_logs_and_end_ranks(self: monitor.AttemptMonitor, *arguments: int) -> None:
            _save_logs(self.record, workspace)
            await end_ranks(self, *arguments)

        return save_logs_and_end_ranks

    with contextlib.ExitStack() as stack:
        for module, name, seconds in times:
            stack.enter_context(mock.patch.object(module, name, seconds))
        for name in ("_signal", "_terminate"):
            end_ranks = saving_logs(getattr(monitor.AttemptMonitor, name))
            stack.enter_context(mock.patch.object(monitor.AttemptMonitor, name, end_ranks))
        record = _run(cell, workspace, kind, 0.0)
    return _with_logs(outcome, cell.by_logs, record, workspace)


def _save_logs(step: StepRecord, workspace: Workspace) -> Path:
    """Copy the logs of an attempt, if they are not yet copied, and return the copy."""
    logs = workspace.root / "downloaded" / Path(step.folder).parent.name / "user_logs"
    if not logs.exists():
        shutil.copytree(Path(step.folder) / "user_logs", logs)
    return logs


def _with_logs(outcome: Outcome, right: Cell, record: RunRecord, workspace: Workspace) -> Outcome:
    """Return the outcome with the verdict over a copy of the logs. right: what is right over the logs alone"""
    logs = _save_logs(record.steps[0], workspace)
    verdict = next(iter(folder.verdicts(logs)), None)
    # The struck rank writes the time of the fault after it.
    last = max((path.stat().st_mtime for path in logs.iterdir()), default=0.0)
    if verdict is None and last < _struck(right, record) + 0.5:
        return replace(outcome, by_logs=NOTHING, logs_right=None)
    return replace(outcome, by_logs=described(verdict, "no failure"), logs_right=is_right(right, verdict, ""))


def _own_limit(cell: Cell) -> float:
    return SLOW_LIMIT if cell.stack.startswith(("ZeRO", "Ray")) else OWN_LIMIT


def _struck(cell: Cell, record: RunRecord) -> float:
    """Return the time of the fault, in seconds since the epoch."""
    step = record.steps[0]
    in_training = _in_training(step)
    struck = min((each.time for each in record.faults), default=min(in_training, default=0.0))
    if not in_training or struck < min(in_training):
        found = described(step.verdict, str(step.status))
        raise RuntimeError(f"{cell.name}: the fault did not happen, or before the training: {found}")
    return struck


def _in_training(step: StepRecord) -> list[float]:
    """Return the times at which ranks of a step say that the fault happens, or that they train."""
    return [float(text) for text in _STRUCK.findall(_texts(step))]


def _run(cell: Cell, workspace: Workspace, kind: str, stall: float) -> RunRecord:
    plan = Plan("faults", Graph((step_of(cell, own_ends=not stall),)), source=str(PROJECT / "faults"))
    faults = [cell.injects] if cell.injects else []
    options = Options(instances=kind, track=False, offline=True, stall=stall, slots=8, faults=faults)
    is_due = injection._AttemptFaults._is_due

    def is_due_in_training(self: injection._AttemptFaults, fault: Fault) -> bool:
        return is_due(self, fault) and _STRUCK.search(_texts(self._record)) is not None

    patched = mock.patch.object(injection._AttemptFaults, "_is_due", is_due_in_training)
    with patched, _killing(cell.fault.kills, workspace) if cell.fault.kills else contextlib.nullcontext():
        if cell.fault.kills != "engine":
            return run(plan, workspace, options)
        file = workspace.root / "plan.json"
        workspace.root.mkdir(parents=True, exist_ok=True)
        file.write_text(codec.dumps(plan))
        subprocess.run([sys.executable, "-c", _ENGINE, str(file), str(workspace.root), kind], check=False)
    return stored.runs(workspace)[0]


_ENGINE = """
import sys
from pathlib import Path
from allranks.local import engine
from allranks.local.options import Options
from allranks.plan import codec
from allranks.workspace import Workspace

_, file, root, kind = sys.argv
engine.run(codec.loads(Path(file).read_text()), Workspace(Path(root)), Options(instances=kind, track=False, slots=8))
"""


def step_of(cell: Cell, *, own_ends: bool = False) -> Step:
    """Return the step that trains on the cell's stack. own_ends: whether ranks that wait soon give up"""
    variables = {
        "FAULT": "outside" if cell.fault.kills or cell.fault.injects else cell.fault.name.removesuffix(" of rank 0"),
        "FAULT_RANKS": ",".join(map(str, cell.struck)),
        "FAULT_STEP": str(cell.step),
        "ACCELERATE_USE_CPU": "true",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OMP_NUM_THREADS": "1",
    }
    if cell.stack == "Lightning":
        variables["OPAL_PREFIX"] = sys.prefix  # it initialises MPI wherever mpi4py is, also without mpirun
    if own_ends and (cell.fault.hangs or cell.fault.between):
        variables |= {
            "TIME_OUT": "5",
            "TF_CPP_MIN_LOG_LEVEL": "0",
            "HOROVOD_STALL_CHECK_TIME_SECONDS": "2",
            "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "5",
            "OMPI_MCA_oob_tcp_keepalive_time": "3",
            "OMPI_MCA_oob_tcp_keepalive_intvl": "1",
        }
    return Step(
        "train",
        cell.launch.command_for(cell.layout),
        code=Code(str(SCRIPTS), digest.of_path(SCRIPTS)),
        environment=Environment(cell.launch.stacks[0].environment),
        environment_variables=variables,
        distribution=cell.launch.distribution(cell.layout),
        instance_count=cell.layout.instance_count,
        timeout=_own_limit(cell) if own_ends else LIMIT,
        deterministic=False,
    )


def is_right(cell: Cell, verdict: Verdict | None, status: str) -> bool:
    """Return whether the verdict blames the right rank, and names the cause. status: of the step, if it has none"""
    if not re.search(cell.cause, verdict.reason if verdict else status):
        return False
    number = verdict and (verdict.rank if verdict.worker is None else verdict.worker)
    return number in cell.ranks if cell.ranks else number is None


def described(verdict: Verdict | None, otherwise: str) -> str:
    """Return the verdict in one line."""
    if verdict is None:
        return otherwise
    number = verdict.rank if verdict.worker is None else verdict.worker
    where = f" ({verdict.where})" if verdict.where else ""
    return f"{'-' if number is None else number}: {verdict.reason}{where}"


def processes_left(others: Sequence[psutil.Process], patience: float = 3.0) -> int:
    """Return how many descendants of this process, besides others, still run after some seconds. Their orphans are its
    children."""
    due = time.monotonic() + patience
    while True:
        found = psutil.Process().children(recursive=True)
        alive = [each for each in found if each not in others and _state(each) != psutil.STATUS_ZOMBIE]
        if not alive or time.monotonic() > due:
            return len(alive)
        psutil.wait_procs(alive, due - time.monotonic())


def _state(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


def _texts(step: StepRecord) -> str:
    return "".join(Path(rank.log).read_text(errors="replace") for rank in step.ranks if os.path.exists(rank.log))


@contextlib.contextmanager
def _killing(name: str, workspace: Workspace) -> Iterator[None]:
    """Kill a process of the run when all its ranks train."""
    done = threading.Event()

    def kill() -> None:
        while not done.wait(0.05):
            logs = list(workspace.runs.glob("*/*/user_logs/*.txt"))
            if any(_STRUCK.search(log.read_text(errors="replace")) for log in logs):
                _target(name, workspace).send_signal(signal.SIGKILL)
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        done.set()
        bounded.join(thread)


def _target(name: str, workspace: Workspace) -> psutil.Process:
    every = psutil.Process().children(recursive=True)
    if name == "agent":
        # Its process id is that of the supervisor's namespace, which is the engine's on loopback. In its own, it is 1.
        (log,) = workspace.runs.glob("*/engine.log")
        events = map(json.loads, log.read_text().splitlines())
        own = next(each["started"] for each in events if each["event"] == "agent started" and each["instance"] == 1)
        return next(each for each in every if _pids(each) == [own] or _pids(each)[-2:] == [own, 1])
    if name == "launcher":
        return next(each for each in every if _writes(each, "std_log_process_1.txt") and "torchrun" in _command(each))
    command = {"mpirun": "bin/mpirun", "engine": "plan.json"}[name]
    return [each for each in every if command in _command(each)][-1]


def _writes(process: psutil.Process, log: str) -> bool:
    with contextlib.suppress(OSError):  # it has ended
        return os.path.basename(os.readlink(f"/proc/{process.pid}/fd/1")) == log
    return False


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def _pids(process: psutil.Process) -> list[int]:
    """Return the ids of a process in each of its namespaces, from this one's inwards, or none if it has ended."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return next([int(text) for text in line.split()[1:]] for line in lines if line.startswith("NSpid"))
    return []
