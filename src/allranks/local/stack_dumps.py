"""Read the stacks of running ranks from outside, with py-spy, which stops a process for some milliseconds only.

py-spy 0.4 looks into the namespaces of an instance, and needs neither the script's help nor the lock of its
interpreter.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.contract import report
from allranks.history.records import RankRecord
from allranks.local.instances.processes import TICKS_PER_SECOND, descendants, environment_of, parse_stat
from allranks.text import shortened
from allranks.verdict.rank_stack import Frame, Stack
from allranks.verdict.tracebacks import is_library

PATIENCE = 10.0
"""Time limit for one process in seconds."""

ENGINE = "/allranks/local/"
_DATA_WORKER, _DATA_LOADER = "/torch/utils/data/_utils/worker.py", "/torch/utils/data/dataloader.py"
_HELPERS = (_DATA_WORKER, "/torch/distributed/run.py", "/multiprocessing/resource_tracker.py",
            "/torch/distributed/launcher/", "/accelerate/commands/", "/pip/_internal/", "-packages/conda/")  # fmt: skip
"""Files of processes that are not ranks: workers of data loaders, launchers, and installers."""

_INSTALLERS = re.compile(rb"(?:^|/|\0-m\0)(?:pip[\d.]*|conda)\0")
"""The command line of an installer."""

_SHIM = re.compile(rb"^[^\0]+\0-IS\0")
"""The beginning of the command line of `forkserver/shim.py`."""

_FINALIZED = "Failed to find a python interpreter"
"""py-spy's message on a process whose interpreter has ended, and that MPI_Finalize or a thread keeps alive."""

_DENIED = re.compile("permission denied|not permitted", re.IGNORECASE)
"""py-spy's messages for EPERM and EACCES."""

_JOINING = "/torch/distributed/"
_SETTINGS = ("world_size", "hostname", "port")
"""Local variables in frames of these files, for `Stack.settings`. No other variables leave this module."""


def program() -> str | None:
    """Return the path of py-spy; None if this machine has none."""
    own = Path(sys.executable).with_name("py-spy")
    return str(own) if own.exists() else shutil.which("py-spy")


def rank_stacks(ranks: Iterable[RankRecord], silent: Collection[int] = ()) -> list[Stack]:
    """Return the stacks of the Python processes of ranks; none without py-spy. Raise PermissionError if it may not read
    them. silent: ranks that did not answer the request for their stack
    """
    spy = program()
    found = [] if spy is None else [_stack(spy, pid, rank, silent) for pid, rank in processes_of(ranks)]
    stacks = [stack for stack in found if stack is not None and not stack.waits_for.startswith(_DATA_WORKER)]
    for worker in filter(None, found):
        if worker.user and worker not in stacks:
            place = f"a worker of its data loader, which is at `{worker.user.text}` ({worker.where})"
            stacks = [
                replace(stack, waits_for=place)
                if stack.rank == worker.rank and any(_DATA_LOADER in frame.file for frame in stack.frames)
                else stack
                for stack in stacks
            ]
    return sorted(stacks, key=lambda stack: stack.number)


def shell_stacks(ranks: Iterable[RankRecord]) -> list[Stack]:
    """Return the stack, without frames, of each rank that runs no Python program, or only an installer in Python."""
    pids: dict[int, list[int]] = {}
    for pid, rank in processes_of(ranks):
        pids.setdefault(rank, []).append(pid)
    # A program whose output is redirected does not write to the log.
    families = {rank: [*own, *descendants(own[0])] for rank, own in pids.items()}
    shells = {rank: family for rank, family in families.items() if not any(map(_is_python, family))}
    return [Stack(rank, (), pid=each[0], command=_command(each[0], each[-1])) for rank, each in shells.items()]


def _is_python(pid: int) -> bool:
    try:
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        return program.startswith("python") and not _INSTALLERS.search(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError as error:
        return isinstance(error, PermissionError)


def _command(*pids: int) -> str:
    """Describe the command that a rank runs: its own process, and the last one that it has started."""
    with contextlib.suppress(OSError):
        lines = [Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").split("\0") for pid in pids]
        text, now = (shortened(" ".join(" ".join(each[2:] if each[1:2] == ["-c"] else each).split())) for each in lines)
        who = "its shell" if lines[0][1:2] == ["-c"] else "it"
        return f"{who} runs `{text}`{'' if now in text else f', now `{now}`'}"
    return "it runs a command"


def activity(ranks: Iterable[RankRecord]) -> dict[int, tuple[float, int]]:
    """Return, by process of the ranks, the seconds of CPU time and the bytes read and written, with its descendants.
    Return nothing if one of them has just ended or may not be read. With Horovod, whose background thread uses the
    processor while it waits, only the main thread counts."""
    used = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for pid, _ in processes_of(ranks):
            family = [Path(f"/proc/{each}") for each in _family(pid)]
            if "/horovod/" in (family[0] / "maps").read_text(errors="replace"):
                family[0] /= f"task/{pid}"
            ticks = [parse_stat((each / "stat").read_bytes()).ticks for each in family]
            counts = [int(line.split()[1]) for each in family for line in (each / "io").read_text().splitlines()[:2]]
            used[pid] = sum(ticks) / TICKS_PER_SECOND, sum(counts)
        return used
    return {}


def _family(pid: int) -> list[int]:
    """Return a process and its descendants. Those that a fork server forked for it have another parent, but the same
    report file."""
    family = [pid, *descendants(pid)]
    if any(_SHIM.search(Path(f"/proc/{each}/cmdline").read_bytes()) for each in family):
        own = _report_file(pid)
        forked = (int(name) for name in os.listdir("/proc") if name.isdecimal())
        family += [each for each in forked if own and each not in family and _report_file(each) == own]
    return family


def _report_file(pid: int) -> str:
    with contextlib.suppress(OSError, KeyError):
        return environment_of(pid)[report.VARIABLE]
    return ""


def pids_of(ranks: Iterable[RankRecord]) -> list[int]:
    """Return the ids of the processes of ranks."""
    return [pid for pid, _ in processes_of(ranks)]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes, of which some may have ended."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def processes_of(ranks: Iterable[RankRecord]) -> Iterator[tuple[int, int]]:
    """Yield each process that writes to the log of a rank, with the rank: the shell, the script, the workers of a
    launcher, of Ray and of data loaders."""
    files = {}
    for rank in ranks:
        with contextlib.suppress(OSError):
            status = os.stat(rank.log)
            files[status.st_dev, status.st_ino] = rank.rank
    for name in filter(str.isdecimal, os.listdir("/proc")):
        for stream in (2, 1):
            # A process that has ended, or belongs to another user.
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{_writer(int(name))}/fd/{stream}")
                if (status.st_dev, status.st_ino) in files:
                    yield int(name), files[status.st_dev, status.st_ino]
                    break


def _writer(pid: int) -> int:
    """Return the process of the rank for a worker of Ray, which writes elsewhere; other processes themselves."""
    with contextlib.suppress(OSError):
        if re.search(rb"^ray::|/ray/_private/workers/", Path(f"/proc/{os.getpgid(pid)}/cmdline").read_bytes()):
            return os.getsid(pid)
    return pid


def _stack(spy: str, pid: int, rank: int, silent: Collection[int]) -> Stack | None:
    """Return the stack of the main thread of a process, without the engine's part; None if it is not Python, or
    one of the helpers."""
    # py-spy cannot stop a process that is stopped already.
    state = _state(pid)
    stopped = state == "T"
    try:
        done = _dump(spy, pid, "--locals", *(["--nonblocking"] if stopped else []))
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        if _FINALIZED in done.stderr:
            return Stack(rank, (), _worker(pid), uses_mpi="/libmpi" in maps)
        if done.returncode and _DENIED.search(done.stderr):
            raise PermissionError
        threads = json.loads(done.stdout)
    except PermissionError:
        raise
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    main = _main(threads)
    frames: list[Frame] = []
    settings: dict[str, str] = {}
    for frame in main[0]["frames"] if main else ():
        if ENGINE in frame["filename"]:
            break
        if _DATA_WORKER in frame["filename"]:
            return Stack(rank, tuple(frames), waits_for=_DATA_WORKER)
        is_idle_of_ray = not frames and not stopped and frame["name"].endswith("main_loop")
        if is_idle_of_ray or any(name in frame["filename"] for name in _HELPERS):
            return None
        frames.append(Frame(frame["name"], frame["filename"], frame["line"]))
        if _JOINING in frame["filename"]:
            found = {each["name"]: each["repr"].strip("\"'") for each in frame["locals"] or () if each["repr"]}
            settings = {name: found[name] for name in _SETTINGS if found.get(name, "-1") != "-1"} | settings
    stack = Stack(rank, tuple(frames), _worker(pid), is_stopped=stopped, is_idle=state == "S", settings=settings)
    # A thread that sleeps with the lock does not release it; of one that computes with it, only the others' silence
    # shows that.
    owns_gil = bool(main) and not stopped and main[0]["owns_gil"]
    holds_gil = owns_gil and (not main[0]["active"] or stack.number in silent)
    thread = _thread(threads) if stack.is_exiting and frames else ""
    return replace(stack, holds_gil=holds_gil, pid=pid, uses_mpi="/mpi4py/" in maps, waits_for=thread)


def _thread(threads: Sequence[Mapping[str, Any]]) -> str:
    """Describe the thread that the main thread waits for at the end of the process; "" for none. Python does not tell
    which threads are daemons: choose one that runs the user's code, or else the last one."""
    found = ""
    for thread in threads:
        is_of_engine = not thread["frames"] or any(ENGINE in frame["filename"] for frame in thread["frames"])
        if thread["thread_name"] and thread not in _main(threads) and not is_of_engine:
            frames = [Frame(each["name"], each["filename"], each["line"]) for each in thread["frames"]]
            user = next((frame for frame in frames if not is_library(frame.file)), None)
            place = f"which is at `{user.text}` ({user})" if user else f"which is in {frames[0].function}"
            found = f"its thread {thread['thread_name']}, {place}"
            if user:
                break
    return found


def _dump(spy: str, pid: int, *options: str) -> subprocess.CompletedProcess[str]:
    command = [spy, "dump", "--json", *options, "--pid", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def _main(threads: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    # Without the module threading, the main thread has no name.
    return [each for each in threads if each["thread_name"] == "MainThread" or len(threads) == 1]


def _state(pid: int) -> str:
    """Return the state of the main thread: R for running, S for waiting, T for stopped; "" if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][:1]
    return ""


def _worker(pid: int) -> int | None:
    """Return the rank that torchrun assigned to its worker, from the variable RANK."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        variables = environment_of(pid)
        if "TORCHELASTIC_RUN_ID" in variables:
            return int(variables["RANK"])
    return None
