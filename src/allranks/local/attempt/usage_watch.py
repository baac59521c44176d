"""Record the resource usage of the ranks of one attempt, and note scarce memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from allranks.history.recorder import RunRecorder
from allranks.history.records import RankRecord, Status, StepRecord
from allranks.history.usage import RankUsage, Sample
from allranks.local.capacity import machine_memory, size_memory
from allranks.local.instances.supervisor import Event
from allranks.local.launchers.launching import rank_name
from allranks.text import in_bytes

NEARLY_FULL = 0.9
"""Share of the memory from which its use is reported as high."""


@dataclass(eq=False)
class UsageWatch:
    """The resource usage of one attempt.

    size_name: the Azure size of the instances; "" if unknown
    """

    record: StepRecord
    recorder: RunRecorder
    size_name: str = ""

    def __post_init__(self) -> None:
        self._ranks = {rank_name(rank.rank): rank for rank in self.record.ranks}
        self._last: dict[int, RankUsage] = {}
        self._ended: dict[int, float] = defaultdict(float)
        self._noted: set[str] = set()

    def add_end(self, rank: RankRecord, event: Event) -> None:
        """Record the resource usage of a rank that has ended, or of a forked process of it."""
        if event.cpu is not None:
            self._ended[rank.rank] = round(self._ended[rank.rank] + event.cpu, 3)
            rank.cpu_seconds = max(rank.cpu_seconds or 0.0, self._ended[rank.rank])
        if rank.rank not in self._last:  # no sample
            rank.peak_memory = max(rank.peak_memory or 0, event.memory or 0)

    def sample(self, event: Event) -> None:
        """Record a sample, or the failure to sample, that an agent has reported."""
        if event.kind == "usage_failed":
            self._note("failed", f"resource usage is not measured: {event.reason}")
            return
        ranks = {}
        for name, values in event.ranks.items():
            rank = self._ranks.get(name)
            if rank is not None:  # else mpirun itself
                ranks[rank.rank] = used = _usage(values)
                self._update(rank, used)
        self.recorder.add_sample(self.record, int(event.agent.rpartition("/")[2]), Sample(event.time, ranks))
        self._note_memory(event.agent)

    def _update(self, rank: RankRecord, used: RankUsage) -> None:
        self._last[rank.rank] = used
        rank.cpu_seconds = max(rank.cpu_seconds or 0.0, used.cpu)
        rank.peak_memory = max(rank.peak_memory or 0, used.memory)
        if used.gpu_memory is not None:
            rank.peak_gpu_memory = max(rank.peak_gpu_memory or 0, used.gpu_memory)

    def _note_memory(self, agent: str) -> None:
        """Note once that the ranks of an instance, or all of them, use nearly all memory."""
        used = {rank: usage.memory for rank, usage in self._last.items()}
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
