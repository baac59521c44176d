"""What is noted of the ranks' usage while they run, from the events that the agents report."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from allranks.history.observer import Observer
from allranks.history.recorder import RunRecorder
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.history.usage import RankUsage, Sample
from allranks.local.attempt import usage_watch
from allranks.local.attempt.usage_watch import UsageWatch
from allranks.local.instances.supervisor import Event

BEGIN = 1_000_000.0
GB = 10**9


class Trial:
    """A step with running ranks, two on each instance, and the watch of it."""

    def __init__(self, store: Store, ranks: int, size_name: str = "") -> None:
        self.step = StepRecord("train", "", "", "pytorch", (ranks + 1) // 2, 2, status=Status.RUNNING)
        self.step.ranks = [
            RankRecord(rank, rank // 2, rank % 2, "host", Status.RUNNING, started=BEGIN) for rank in range(ranks)
        ]
        run = RunRecord("r", "p", "p", "", "rack", steps=[self.step])
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        self.watch = UsageWatch(self.step, recorder, size_name)

    def run(self, first: int, last: int, memory: int) -> list[str]:
        """Report a sample per second, and return the notes so far. memory: what each rank uses"""
        for second in range(first, last + 1):
            for instance in range(self.step.instance_count):
                ranks = {
                    f"rank {rank.rank}": [1.0, memory] for rank in self.step.ranks if rank.instance_rank == instance
                }
                self.watch.sample(Event("usage", f"train/0/{instance}", BEGIN + second, ranks=ranks))
        return self.step.notes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.db") as store:
        yield store


@pytest.fixture(autouse=True)
def _large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_watch, "machine_memory", lambda: 2000 * GB)


def test_memory_near_that_of_the_size_is_noted_by_instance(store: Store) -> None:
    trial = Trial(store, 4, size_name="Standard_ND96asr_v4")  # 900 GiB
    assert trial.run(1, 3, 400 * GB) == []
    assert trial.run(4, 9, 450 * GB) == [
        "the ranks of instance 0 use 900 GB of memory, and Standard_ND96asr_v4 has 966 GB",
        "its ranks use 1.8 TB of memory, and this machine has 2.0 TB",
    ]


def test_a_sample_is_recorded_with_the_totals_of_the_ranks(store: Store) -> None:
    trial = Trial(store, 2)
    event = Event(
        "usage",
        "train/0/0",
        BEGIN + 1,
        ranks={"rank 0": [0.5, 7], "rank 1": [0.25, 9, 50, 3], "mpirun": [1.0, 1]},
    )
    trial.watch.sample(event)
    trial.watch.sample(Event("usage", "train/0/0", BEGIN + 2, ranks={"rank 0": [0.75, 5], "rank 1": [0.5, 11, 0, 2]}))
    assert trial.step.usage[0][0] == Sample(BEGIN + 1, {0: RankUsage(0.5, 7), 1: RankUsage(0.25, 9, 50, 3)})
    first, second = trial.step.ranks
    assert (first.cpu_seconds, first.peak_memory, first.peak_gpu_memory) == (0.75, 7, None)
    assert (second.cpu_seconds, second.peak_memory, second.peak_gpu_memory) == (0.5, 11, 3)
    # At its end the kernel tells the CPU time exactly. Its peak includes pages of files, which samples leave out.
    trial.watch.add_end(first, Event("exited", "train/0/0", BEGIN + 3, "rank 0", 0, cpu=0.81, memory=1000))
    assert (first.cpu_seconds, first.peak_memory) == (0.81, 7)


def test_a_rank_without_a_sample_has_the_totals_of_its_end(store: Store) -> None:
    trial = Trial(store, 1)
    trial.watch.add_end(trial.step.ranks[0], Event("exited", "train/0/0", BEGIN, "rank 0", 0, cpu=0.02, memory=1000))
    assert (trial.step.ranks[0].cpu_seconds, trial.step.ranks[0].peak_memory) == (0.02, 1000)
    # A process of it that was forked: the shell has not waited for that.
    trial.watch.add_end(trial.step.ranks[0], Event("used", "train/0/0", BEGIN, "rank 0", cpu=1.5, memory=3000))
    assert (trial.step.ranks[0].cpu_seconds, trial.step.ranks[0].peak_memory) == (1.52, 3000)


def test_a_failure_to_measure_is_noted_once(store: Store) -> None:
    trial = Trial(store, 4)
    for instance in (0, 1):
        trial.watch.sample(Event("usage_failed", f"train/0/{instance}", BEGIN, reason="OSError: no /proc"))
    assert trial.step.notes == ["resource usage is not measured: OSError: no /proc"]
