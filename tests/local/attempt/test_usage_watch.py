"""What is noted of the ranks' usage while they run, from the events that the agents report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

    def __init__(self, store: Store, ranks: int, awaited: int | None = None, size_name: str = "") -> None:
        self.step = StepRecord("train", "", "", "pytorch", (ranks + 1) // 2, 2, status=Status.RUNNING)
        self.step.ranks = [
            RankRecord(rank, rank // 2, rank % 2, "host", Status.RUNNING, started=BEGIN) for rank in range(ranks)
        ]
        run = RunRecord("r", "p", "p", "", "rack", steps=[self.step])
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        names = {f"rank {rank}" for rank in range(ranks if awaited is None else awaited)}
        self.watch = UsageWatch(self.step, recorder, names, patience=10.0, size_name=size_name)
        self.cpu = dict.fromkeys(range(ranks), 0.0)

    def end(self, rank: int, time: float, status: Status = Status.COMPLETED) -> None:
        record = self.step.ranks[rank]
        record.status, record.ended = status, BEGIN + time

    def run(
        self, first: int, last: int, cores: Mapping[int, float], memory: int = GB, gpu: float | None = None
    ) -> list[str]:
        """A sample per second. cores: what each running rank uses. Return the notes so far."""
        for second in range(first, last + 1):
            for instance in range(self.step.instance_count):
                ranks: dict[str, list[float | None]] = {}
                for rank in self.step.ranks:
                    if rank.status is Status.RUNNING and rank.instance_rank == instance:
                        self.cpu[rank.rank] += cores.get(rank.rank, 0.0)
                        gpus = [] if gpu is None else [gpu, GB]
                        ranks[f"rank {rank.rank}"] = [self.cpu[rank.rank], memory, *gpus]
                self.watch.sampled(Event("usage", f"train/0/{instance}", BEGIN + second, ranks=ranks))
        return self.step.notes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.db") as store:
        yield store


@pytest.fixture(autouse=True)
def _large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_watch, "machine_memory", lambda: 2000 * GB)


WAITING = (
    "rank 2 has ended; ranks 0, 1 and 3 are still running and have used almost no CPU for 10 s: they may be waiting"
    " for it"
)


def test_ranks_that_use_no_cpu_after_another_has_ended_may_wait_for_it(store: Store) -> None:
    trial = Trial(store, 4)
    busy = dict.fromkeys(range(4), 1.0)
    assert trial.run(1, 20, busy) == []
    trial.end(2, 20)
    assert trial.run(21, 29, {}) == []
    assert trial.run(30, 60, {}) == [WAITING]  # once


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_that_works_on_waits_for_nobody(store: Store, rank: int) -> None:
    trial = Trial(store, 4)
    trial.end(2, 5)
    assert trial.run(1, 40, {rank: 0.1}) == []


def test_ranks_whose_gpus_are_busy_wait_for_nobody(store: Store) -> None:
    trial = Trial(store, 4)
    trial.end(2, 5)
    assert trial.run(1, 40, {}, gpu=80.0) == []


@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELED])
def test_a_rank_that_did_not_end_well_is_the_verdict_s(store: Store, status: Status) -> None:
    trial = Trial(store, 4)
    trial.end(1, 4)
    trial.end(2, 5, status)
    assert trial.run(1, 40, {}) == []


def test_without_an_end_nobody_waits(store: Store) -> None:
    assert Trial(store, 4).run(1, 25, {}) == []


def test_parameter_servers_wait_by_design(store: Store) -> None:
    trial = Trial(store, 4, awaited=2)
    trial.end(1, 5)
    assert trial.run(1, 40, {0: 1.0}) == []


def test_one_rank_may_wait_for_several(store: Store) -> None:
    trial = Trial(store, 3)
    trial.end(0, 5)
    trial.end(2, 5)
    note = (
        "ranks 0 and 2 have ended; rank 1 is still running and has used almost no CPU for 10 s: it may be waiting for"
        " them"
    )
    assert trial.run(1, 40, {}) == [note]


def test_memory_near_that_of_the_size_is_noted_by_instance(store: Store) -> None:
    trial = Trial(store, 4, size_name="Standard_ND96asr_v4")  # 900 GiB
    assert trial.run(1, 3, {}, memory=400 * GB) == []
    assert trial.run(4, 9, {}, memory=450 * GB) == [
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
    trial.watch.sampled(event)
    trial.watch.sampled(Event("usage", "train/0/0", BEGIN + 2, ranks={"rank 0": [0.75, 5], "rank 1": [0.5, 11, 0, 2]}))
    assert trial.step.usage[0][0] == Sample(BEGIN + 1, {0: RankUsage(0.5, 7), 1: RankUsage(0.25, 9, 50, 3)})
    first, second = trial.step.ranks
    assert (first.cpu_seconds, first.peak_memory, first.peak_gpu_memory) == (0.75, 7, None)
    assert (second.cpu_seconds, second.peak_memory, second.peak_gpu_memory) == (0.5, 11, 3)
    # At its end the kernel tells the CPU time exactly. Its peak includes pages of files, which samples leave out.
    trial.watch.exited(first, Event("exited", "train/0/0", BEGIN + 3, "rank 0", 0, cpu=0.81, memory=1000))
    assert (first.cpu_seconds, first.peak_memory) == (0.81, 7)


def test_a_rank_without_a_sample_has_the_totals_of_its_end(store: Store) -> None:
    trial = Trial(store, 1)
    trial.watch.exited(trial.step.ranks[0], Event("exited", "train/0/0", BEGIN, "rank 0", 0, cpu=0.02, memory=1000))
    assert (trial.step.ranks[0].cpu_seconds, trial.step.ranks[0].peak_memory) == (0.02, 1000)


def test_a_failure_to_measure_is_noted_once(store: Store) -> None:
    trial = Trial(store, 4)
    for instance in (0, 1):
        trial.watch.sampled(Event("usage_failed", f"train/0/{instance}", BEGIN, reason="OSError: no /proc"))
    assert trial.step.notes == ["resource usage is not measured: OSError: no /proc"]
