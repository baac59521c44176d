"""The processes of an instance, and the rank that each of them belongs to.

A process belongs to the rank that its session or its parent belongs to, so that data loader workers, and daemons that
have left their rank's process group, count for their rank. A rank that mpirun started is recognised by the variable in
which mpirun passes it its number.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from allranks.local.instances.agent.process_stat import Stat, parse_memory, parse_proportional_memory, parse_stat

RANK = "rank "
"""Beginning of the name of a program that is a rank."""

RANK_VARIABLE = b"OMPI_COMM_WORLD_RANK="

MOST = 400
"""Maximum number of processes of an instance that are followed. Each takes two open files."""

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
        """Measure how much of its memory other processes map as well. The more memory it has, the longer this takes.

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

    programs: the programs that this process has started, by process id
    """

    def __init__(self, programs: Mapping[int, str]) -> None:
        self.processes: dict[int, Process] = {}
        self._programs = programs
        self._ranks_by_session = dict(programs)
        self._others: set[int] = set()

    def refresh(self) -> None:
        """Read all processes: find new ones, and forget those that have ended."""
        for process in list(self.processes.values()):
            if not process.read():
                self._forget(process)
            elif process.stat.session not in self._ranks_by_session:
                # It has just become the leader of its own session, as a rank does that mpirun starts.
                process.rank = self._rank_of(process.pid, process.stat, {}) or process.rank
            elif process.pid == process.stat.session and process.pid not in self._programs:
                self._recognize(process)
        # A process of others never becomes one of ours, so each is read once.
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
        """Close all files."""
        for process in list(self.processes.values()):
            self._forget(process)

    def _forget(self, process: Process) -> None:
        process.close()
        del self.processes[process.pid]

    def _recognize(self, leader: Process) -> None:
        """Look again whether the leader of a session is a rank. Until it executes its program, its environment is that
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
        """Return the rank of a process; "" for a process of others. found: the other new processes"""
        rank = self._ranks_by_session.get(stat.session, "")
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
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        for variable in file.read().split(b"\0"):
            if variable.startswith(RANK_VARIABLE):
                return RANK + variable[len(RANK_VARIABLE) :].decode(errors="replace")
    return ""
