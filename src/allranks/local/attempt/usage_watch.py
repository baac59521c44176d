"""Record the resource usage of the ranks of one attempt, and note ranks that wait and scarce memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from allranks.history.formatting import in_bytes, rank_list
from allranks.history.recorder import RunRecorder
from allranks.history.records import RankRecord, Status, StepRecord
from allranks.history.usage import RankUsage, Sample
from allranks.local.capacity import machine_memory, size_memory
from allranks.local.instances.supervisor import Event
from allranks.local.launchers.launching import rank_name

PATIENCE = 10.0
"""Seconds without progress after which ranks are reported as waiting for one that has ended."""

NO_CPU = 0.02
"""Of a core: a rank that uses less makes no progress. Threads that wait for messages use a little."""

GPU_IDLE = 5
"""Percent of use of its GPUs up to which a rank makes no progress."""

NEARLY_FULL = 0.9
"""Share of the memory from which it is reported as nearly used up."""


@dataclass(eq=False)
class UsageWatch:
    """The resource usage of one attempt.

    awaited:   names of the ranks that the step waits for. The others, such as parameter servers, only serve them
    patience:  seconds, as PATIENCE
    size_name: the Azure size of the instances; "" if it is not known
    """

    record: StepRecord
    recorder: RunRecorder
    awaited: Collection[str]
    patience: float = PATIENCE
    size_name: str = ""

    def __post_init__(self) -> None:
        self._ranks = {rank_name(rank.rank): rank for rank in self.record.ranks}
        self._awaited = [rank for name, rank in self._ranks.items() if name in self.awaited]
        self._last: dict[int, tuple[float, RankUsage]] = {}
        self._active: dict[int, float] = {}
        self._noted: set[str] = set()

    def exited(self, rank: RankRecord, event: Event) -> None:
        if event.cpu is not None:
            rank.cpu_seconds = max(rank.cpu_seconds or 0.0, event.cpu)
        if not rank.peak_memory:  # no sample, or only one of a process that had just ended
            rank.peak_memory = event.memory

    def sampled(self, event: Event) -> None:
        """Record a sample, or the failure to sample, that an agent has reported."""
        if event.kind == "usage_failed":
            self._note("failed", f"resource usage is not measured: {event.reason}")
            return
        ranks = {}
        for name, values in event.ranks.items():
            rank = self._ranks.get(name)
            if rank is not None:  # else mpirun itself
                ranks[rank.rank] = used = _usage(values)
                self._update(rank, used, event.time)
        self.recorder.add_sample(self.record, int(event.agent.rpartition("/")[2]), Sample(event.time, ranks))
        self._note_memory(event.agent)
        self._note_waiting(event.time)

    def _update(self, rank: RankRecord, used: RankUsage, time: float) -> None:
        before = self._last.get(rank.rank)
        earlier, cpu = (before[0], before[1].cpu) if before else (rank.started or time, 0.0)
        if used.cpu - cpu > NO_CPU * (time - earlier) or (used.gpu or 0) > GPU_IDLE:
            self._active[rank.rank] = time
        self._last[rank.rank] = (time, used)
        rank.cpu_seconds = max(rank.cpu_seconds or 0.0, used.cpu)
        rank.peak_memory = max(rank.peak_memory or 0, used.memory)
        if used.gpu_memory is not None:
            rank.peak_gpu_memory = max(rank.peak_gpu_memory or 0, used.gpu_memory)

    def _note_waiting(self, now: float) -> None:
        """Note once that ranks may wait for a rank that has ended."""
        ended = [rank for rank in self._awaited if rank.status is Status.COMPLETED]
        running = [rank for rank in self._awaited if rank.status is Status.RUNNING]
        if not ended or not running or len(ended) + len(running) < len(self._awaited):
            return
        since = max(rank.ended or now for rank in ended)
        for rank in running:
            if rank.rank not in self._last:
                return
            # Without a later sample of this rank, nothing is known of it.
            seen, _ = self._last[rank.rank]
            if seen - max(since, self._active.get(rank.rank, rank.started or now)) < self.patience:
                return
        one = len(running) == 1
        text = (
            f"{rank_list([rank.rank for rank in ended])} {'has' if len(ended) == 1 else 'have'} ended;"
            f" {rank_list([rank.rank for rank in running])} {'is' if one else 'are'} still running and"
            f" {'has' if one else 'have'} used almost no CPU for {self.patience:g} s:"
            f" {'it' if one else 'they'} may be waiting for {'it' if len(ended) == 1 else 'them'}"
        )
        self._note("waiting", text)

    def _note_memory(self, agent: str) -> None:
        """Note once that the ranks of an instance, or all of them, use nearly all memory."""
        used = {rank: usage.memory for rank, (_, usage) in self._last.items()}
        running = [rank for rank in self.record.ranks if rank.status is Status.RUNNING and rank.rank in used]
        total = sum(used[rank.rank] for rank in running)
        if total >= NEARLY_FULL * machine_memory():
            all_memory = in_bytes(machine_memory())
            self._note("machine", f"its ranks use {in_bytes(total)} of memory, and this machine has {all_memory}")
        limit = size_memory(self.size_name)
        instance = int(agent.rpartition("/")[2])
        on_instance = sum(used[rank.rank] for rank in running if rank.instance_rank == instance)
        if limit is not None and on_instance >= NEARLY_FULL * limit:
            text = f"the ranks of instance {instance} use {in_bytes(on_instance)} of memory, and {self.size_name} has"
            self._note("size", f"{text} {in_bytes(limit)}")

    def _note(self, key: str, text: str) -> None:
        if key not in self._noted:
            self._noted.add(key)
            self.recorder.note(self.record, text)


def _usage(values: Sequence[float | None]) -> RankUsage:
    cpu, memory, *gpus = values
    gpu, gpu_memory = gpus or (None, None)
    return RankUsage(cpu or 0.0, int(memory or 0), gpu, None if gpu_memory is None else int(gpu_memory))
