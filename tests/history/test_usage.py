"""The samples of resource usage: thinned, as rates, and in the store."""

import sqlite3
from pathlib import Path

import pytest

from allranks.history.observer import Observer
from allranks.history.recorder import RunRecorder
from allranks.history.records import RunRecord, StepRecord
from allranks.history.store import Store
from allranks.history.usage import MOST, RankUsage, Sample, latest, thin


def _sample(time: float, **values: RankUsage) -> Sample:
    return Sample(time, {int(name.removeprefix("rank")): used for name, used in values.items()})


def test_two_neighbours_become_one_without_losing_totals_and_peaks() -> None:
    samples = [
        Sample(1.0, {0: RankUsage(1.0, 70, 10.0, 5), 1: RankUsage(0.5, 1)}),
        Sample(2.0, {0: RankUsage(1.5, 30, 30.0, 4)}),
        Sample(3.0, {0: RankUsage(2.5, 40)}),
    ]
    assert thin(samples) == [
        Sample(2.0, {0: RankUsage(1.5, 70, 20.0, 5), 1: RankUsage(0.5, 1)}),
        samples[2],
    ]


def test_the_latest_usage_of_a_rank() -> None:
    samples = [_sample(float(time), rank0=RankUsage(0.5 * time, time)) for time in range(1, 10)]
    assert latest(samples, 0, started=0.0) == (0.5, RankUsage(4.5, 9))
    assert latest(samples[:1], 0, started=0.5) == (1.0, RankUsage(0.5, 1))
    assert latest(samples, 1, started=0.0) is None
    assert latest([], 0, started=None) is None


@pytest.fixture
def step() -> StepRecord:
    return StepRecord("train", "", "", "pytorch", 2, 1)


@pytest.fixture
def run(step: StepRecord) -> RunRecord:
    return RunRecord("r", "p", "p", "", "rack", steps=[step, StepRecord("other", "", "", "none", 1, 1)])


def test_samples_are_stored_and_read_when_asked_for(tmp_path: Path, run: RunRecord, step: StepRecord) -> None:
    with Store(tmp_path / "store.db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        recorder.add_sample(step, 1, Sample(1.5, {1: RankUsage(0.5, 100, 30.0, 7)}))
        recorder.add_sample(step, 0, Sample(1.0, {0: RankUsage(0.25, 200), 2: RankUsage(0.0, 1)}))
        recorder.add_sample(step, 0, Sample(2.0))
        store.save_step(run, step)
        found = store.run("r")
        assert [node.usage for node in found.steps] == [{}, {}]
        assert [node.usage for node in next(store.each_run()).steps] == [{}, {}]
        store.load_usage(found)
        assert found.step("train").usage == step.usage
        assert found.step("other").usage == {}
        recorder.forget_usage(step)
        store.load_usage(found)
        assert step.usage == found.step("train").usage == {}


def test_a_long_step_keeps_a_bounded_number_of_samples(tmp_path: Path, run: RunRecord, step: StepRecord) -> None:
    with Store(tmp_path / "store.db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        for time in range(1, 3 * MOST):
            recorder.add_sample(step, 0, Sample(float(time), {0: RankUsage(time / 2, time)}))
            assert len(step.usage[0]) < MOST
        found = store.run("r")
        store.load_usage(found)
        assert found.step("train").usage == step.usage
        assert {sample.ranks[0].cpu / sample.time for sample in step.usage[0]} == {0.5}
        assert step.usage[0][-1].time == 3 * MOST - 1


def test_a_removed_run_leaves_no_samples(tmp_path: Path, run: RunRecord, step: StepRecord) -> None:
    with Store(tmp_path / "store.db") as store:
        store.add_run(run, "{}")
        RunRecorder(run, store, Observer()).add_sample(step, 0, Sample(1.0, {0: RankUsage(1.0, 1)}))
        store.remove_run("r")
        assert store.connection.execute("SELECT count(*) FROM usage").fetchone() == (0,)


def test_a_damaged_sample_is_an_error_of_the_store(tmp_path: Path, run: RunRecord) -> None:
    with Store(tmp_path / "store.db") as store:
        store.add_run(run, "{}")
        store.connection.execute("INSERT INTO usage VALUES ('r', 'train', 0, 1.0, '[[0]')")
        with pytest.raises(sqlite3.DatabaseError, match="a sample cannot be read"):  # `Store` makes it an InputError
            store.load_usage(run)
