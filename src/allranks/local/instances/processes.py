"""The processes of an instance: start one, find those below a process in /proc, read their resource usage, kill them.

psutil is not used: its import takes 10 ms (this module's: 1.3 ms), and its sample of a process 26 us (ours: 6 us, as
the files stay open).
"""

import contextlib
import json
import os
import signal
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
"""Signals that a program starts with the default action for, independent of the agent's own handlers."""


def start(program: Mapping[str, Any]) -> int:
    """Start a process and return its id without waiting. This changes the caller's own working directory to that of the
    program.

    program: the fields of `supervisor.Program`. Its stdout and stderr are appended to its log, whose folder must exist.

    The process leads its own session, so that a signal to its group also reaches its children. If the folder or the
    program cannot be used, the process exits with code 127 and its log contains the reason.
    """
    arguments, folder, log = program["arguments"], program["folder"], program["log"]
    output = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), output, (os.POSIX_SPAWN_DUP2, 1, 2)]
    try:
        os.chdir(folder)
        # A fork would copy this interpreter's memory map, which takes 2 ms more.
        return os.posix_spawn(
            arguments[0],
            arguments,
            program["environment"],
            file_actions=streams,
            setsid=True,
            setsigmask=(),
            setsigdef=ENDING,
        )
    except OSError as error:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"cannot start {arguments[0]} in {folder}: {error}\n")
        pid = os.fork()
        if not pid:
            os._exit(127)
        return pid


def signal_group(leader: int, number: int) -> None:
    """Send a signal to the process group of a leader, or only to the leader if it has not made its group yet. Do
    nothing if it has ended."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            send(leader, number)
            return


def write_event(file: int, **event: Any) -> None:
    """Write an event for the engine. A line shorter than PIPE_BUF (4,096 bytes) is written atomically, although other
    processes write to the same pipe or file."""
    os.write(file, (json.dumps(event, separators=(",", ":")) + "\n").encode())


def environment_of(pid: int | str) -> dict[str, str]:
    """Return the environment that a process was started with. Raise OSError if it has ended, or belongs to another
    user."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = file.read().split(b"\0")
    return dict(os.fsdecode(variable).split("=", 1) for variable in variables if b"=" in variable)


def descendants(root: int) -> list[int]:
    """Return the ids of the descendants of `root`, its children first."""
    children = _by_parent()
    pids: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        pids += level
    return pids


def _by_parent() -> dict[int, list[int]]:
    """Return the children of every process on this machine, by the id of their parent."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    parent = parse_stat(file.read()).parent
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
            children.setdefault(parent, []).append(int(entry))
    return children


def end_descendants() -> None:
    """Kill and reap all descendants of this process. Return when none remains.

    This process must be a subreaper or the first process of its PID namespace. An orphan then becomes its child, so no
    descendant remains when no child remains, however fast they fork.
    """
    while _has_children():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(-1, 0)


def end_orphans(skipped: Collection[int]) -> None:
    """Kill and reap the children of this process that are not in `skipped`, and their descendants. This process must be
    a subreaper."""
    while orphans := [pid for pid in _by_parent().get(os.getpid(), ()) if pid not in skipped]:
        for orphan in orphans:
            for pid in (*descendants(orphan), orphan):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _has_children() -> bool:
    """Reap the children that have ended. Return whether a child remains."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """The fields of /proc/PID/stat in use.

    ticks: CPU time in clock ticks, of the process and of the ended children that it has waited for
    image: two addresses that a forked process shares with its parent until it executes another program. With random
           addresses, no other process has the same.
    """

    parent: int
    session: int
    ticks: int
    image: tuple[bytes, bytes]


def parse_stat(text: bytes) -> Stat:
    """Parse a stat file. Raise ValueError or IndexError if it is invalid."""
    # The second field is the name in parentheses, which may itself contain spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    return Stat(int(fields[1]), int(fields[3]), ticks, (fields[23], fields[25]))


def parse_memory(status: bytes) -> int:
    """Return the bytes of memory that no file backs, from a status file: private memory and shared memory in use.

    Shared memory counts in every process that maps it. 0 for a process that has ended.
    """
    private = _kilobytes(status, b"\nRssAnon:")
    if private is None:  # a kernel or an emulation without the parts
        return (_kilobytes(status, b"\nVmRSS:") or 0) << 10
    return (private + (_kilobytes(status, b"\nRssShmem:") or 0)) << 10


def parse_proportional_memory(rollup: bytes) -> int | None:
    """Return the bytes of memory like `parse_memory`, but with each page divided by the number of processes that map
    it, from a smaps_rollup file. None if the kernel does not report it."""
    private = _kilobytes(rollup, b"\nPss_Anon:")
    if private is None:
        return None
    return (private + (_kilobytes(rollup, b"\nPss_Shmem:") or 0)) << 10


def _kilobytes(text: bytes, key: bytes) -> int | None:
    start = text.find(key)
    if start < 0:
        return None
    start += len(key)
    return int(text[start : text.index(b"kB", start)])


RANK = "rank "
"""Beginning of the name of a program that is a rank."""

RANK_VARIABLE = "OMPI_COMM_WORLD_RANK"

MOST = 400
"""Maximum number of processes of an instance that are sampled. Each takes two open files."""

_BUFFER = 1 << 13


class Process:
    """A process of the instance. Its files stay open, so that a later process with the same id is never read instead.

    rank:   the name of the program that it belongs to
    memory: bytes, as of `parse_memory`
    excess: bytes of its memory that other processes map as well, as last measured; None if it was not measured
    """

    def __init__(self, pid: int, rank: str) -> None:
        """Open the files of the process. Raise OSError if it has ended."""
        self.pid = pid
        self.rank = rank
        self.stat = Stat(0, 0, 0, (b"", b""))
        self.memory = 0
        self.excess: int | None = None
        self.measured = 0.0
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            self._status = os.open(f"/proc/{pid}/status", os.O_RDONLY)
        except BaseException:
            os.close(self._stat)
            raise

    def read(self) -> bool:
        """Read its CPU time and memory. Return False if it has ended."""
        try:
            self.stat = parse_stat(os.pread(self._stat, _BUFFER, 0))
            self.memory = parse_memory(os.pread(self._status, _BUFFER, 0))
        except (OSError, ValueError, IndexError):
            return False
        return True

    def measure_excess(self, now: float) -> None:
        """Measure how much of its memory is shared with other processes, in time proportional to its memory.

        now: seconds of a monotonic clock
        """
        self.measured = now
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{self.pid}/smaps_rollup", "rb") as file:
            proportional = parse_proportional_memory(file.read())
            if proportional is not None:
                self.excess = max(self.memory - proportional, 0)

    def close(self) -> None:
        os.close(self._stat)
        os.close(self._status)


class ProcessTree:
    """The processes below this process, by process id.

    programs: the programs that this process has started, or forked, by process id. More may be added to it later
    """

    def __init__(self, programs: Mapping[int, str]) -> None:
        self.processes: dict[int, Process] = {}
        self._programs = programs
        self._ranks_by_session: dict[int, str] = {}
        self._others: set[int] = set()

    def refresh(self) -> None:
        """Read all processes: find new ones, and forget those that have ended."""
        self._ranks_by_session.update(self._programs)
        for process in list(self.processes.values()):
            if not process.read():
                self._forget(process)
            elif process.stat.session not in self._ranks_by_session:
                # It has just become the leader of its own session, as a rank does that mpirun starts.
                process.rank = self._rank_of(process.pid, process.stat, {}) or process.rank
            elif process.pid == process.stat.session and process.pid not in self._programs:
                self._recognize(process)
        # A process that belongs to no rank never becomes one of ours, so it is read only once.
        pids = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
        self._others &= pids
        found: dict[int, Stat] = {}
        for pid in pids - self._others - self.processes.keys():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb", 0) as file:
                found[pid] = parse_stat(file.read())
        for pid, stat in found.items():
            rank = self._rank_of(pid, stat, found)
            if not rank or len(self.processes) >= MOST:
                self._others.add(pid)
                continue
            with contextlib.suppress(OSError):
                self.processes[pid] = Process(pid, rank)
                if not self.processes[pid].read():
                    self._forget(self.processes[pid])

    def close(self) -> None:
        for process in list(self.processes.values()):
            self._forget(process)

    def _forget(self, process: Process) -> None:
        process.close()
        del self.processes[process.pid]

    def _recognize(self, leader: Process) -> None:
        """Check again whether the leader of a session is a rank. Until it executes its program, its environment is that
        of its parent."""
        if leader.rank.startswith(RANK):
            return
        rank = _rank_from_environment(leader.pid)
        if rank:
            self._ranks_by_session[leader.pid] = rank
            for process in self.processes.values():
                if process.stat.session == leader.pid:
                    process.rank = rank

    def _rank_of(self, pid: int, stat: Stat, found: Mapping[int, Stat]) -> str:
        """Return the rank of a process; "" if it belongs to no rank. found: the other new processes"""
        # A forked program may not have made its session yet.
        rank = self._programs.get(pid) or self._ranks_by_session.get(stat.session, "")
        if rank:
            return rank
        if stat.parent in self.processes:
            rank = self.processes[stat.parent].rank
        elif stat.parent in found:
            rank = self._rank_of(stat.parent, found[stat.parent], found)
        if rank and not rank.startswith(RANK) and stat.session == pid:
            rank = _rank_from_environment(pid) or rank
        if rank:
            self._ranks_by_session[stat.session] = rank
        return rank


def _rank_from_environment(pid: int) -> str:
    """Return the name of the rank that mpirun started as this process; "" for another process."""
    with contextlib.suppress(OSError, KeyError):
        return RANK + environment_of(pid)[RANK_VARIABLE]
    return ""
