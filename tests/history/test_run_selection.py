"""A run is found by every name that was printed for it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.history import locks, stored
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from allranks.workspace import Workspace

BEGIN = 1783166584.0
NIGHTLY = "nightly-20260704T013000Z"


def record(identity: str, name: str, created: float, **changes: object) -> RunRecord:
    run = RunRecord(identity, name, changes.pop("display_name", name), "", "rack", Status.COMPLETED, created)  # type: ignore[arg-type]
    run.job_name = identity
    for key, value in changes.items():
        setattr(run, key, value)
    return run


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two runs of one pipeline, one that a schedule started, and one on Azure ML."""
    place = Workspace(tmp_path / ".allranks")
    runs = [
        record("ab000001", "digits", BEGIN),
        record("ab000002", "digits", BEGIN + 1, status=Status.FAILED),
        record("cd000003", "retrain", BEGIN + 2, job_name=NIGHTLY, trigger_time=BEGIN, display_name="Retrain weekly"),
        record("calm_plum_x1", "texts", BEGIN + 3, job_name=""),
    ]
    fill(place, *runs)
    return place


def fill(place: Workspace, *runs: RunRecord) -> None:
    place.make()
    with Store(place.database) as store:
        for run in runs:
            store.add_run(run, "{}")


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("ab000001", "ab000001"),
        ("cd", "cd000003"),
        ("latest", "calm_plum_x1"),
        ("calm_plum_x1", "calm_plum_x1"),
        (NIGHTLY, "cd000003"),
        ("nightly-20260704", "cd000003"),
        ("Retrain weekly", "cd000003"),
        ("texts", "calm_plum_x1"),
    ],
)
def test_every_name_of_a_run_leads_to_it(workspace: Workspace, text: str, identity: str) -> None:
    assert stored.run(workspace, text).id == identity


def test_a_name_of_several_runs_lists_them_the_newest_first(workspace: Workspace) -> None:
    with pytest.raises(InputError) as error:
        stored.run(workspace, "digits")
    (problem,) = error.value.problems
    first, newest, oldest = problem.found.splitlines()
    assert first == "fits 2 runs:"
    assert newest.startswith("ab000002  2026-07-04")
    assert newest.endswith("Failed  digits")
    assert oldest.startswith("ab000001")


def test_a_complete_name_takes_precedence_over_the_beginning_of_another(workspace: Workspace) -> None:
    fill(workspace, record("ab", "other", BEGIN + 4), record("nightly", "nightly-20260704T013000Z", BEGIN + 5))
    assert stored.run(workspace, "ab").id == "ab"
    assert stored.run(workspace, NIGHTLY).id == "cd000003"


def test_a_scheduled_run_that_could_not_start_leads_to_its_log(workspace: Workspace) -> None:
    log = workspace.root / "schedules" / "nightly-20260706T013000Z.log"
    log.parent.mkdir()
    log.touch()
    with pytest.raises(InputError, match="the run could not start") as error:
        stored.run(workspace, log.stem)
    assert str(log) in error.value.problems[0].fix


@pytest.mark.parametrize(
    ("chosen", "identities"),
    [
        ({}, ["calm_plum_x1", "cd000003", "ab000002", "ab000001"]),
        ({"statuses": (Status.FAILED,)}, ["ab000002"]),
        ({"since": BEGIN + 2}, ["calm_plum_x1", "cd000003"]),
    ],
)
def test_a_filter_leaves_the_runs_that_meet_it(
    workspace: Workspace, chosen: dict[str, Any], identities: list[str]
) -> None:
    assert [run.id for run in stored.runs(workspace, **chosen)] == identities
    assert [run.id for run in stored.runs(workspace, 1, **chosen)] == identities[:1]


def test_a_run_whose_engine_died_is_filtered_by_its_true_state(workspace: Workspace) -> None:
    fill(workspace, record("dead", "digits", BEGIN + 20, status=Status.RUNNING))

    def found(status: Status) -> list[str]:
        return [run.id for run in stored.runs(workspace, statuses=(status,))]

    assert (found(Status.RUNNING), found(Status.INTERRUPTED)) == ([], ["dead"])


@pytest.mark.parametrize("read", [stored.run, lambda place, _: stored.runs(place, 1)[0]], ids=["one", "all"])
def test_a_run_that_ends_while_it_is_read_is_not_interrupted(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, read: Callable[[Workspace, str], RunRecord]
) -> None:
    late = record("late", "digits", BEGIN + 20, status=Status.RUNNING)
    fill(workspace, late)

    def release(_: Path) -> None:
        with Store(workspace.database) as store:
            store.save_run(replace(late, status=Status.COMPLETED))

    monkeypatch.setattr(locks, "holder", release)
    assert read(workspace, "late").status is Status.COMPLETED


def test_a_list_of_ten_thousand_runs_reads_only_those_that_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Workspace(tmp_path / ".allranks")
    place.make()
    with Store(place.database) as store, store.connection:
        store.connection.execute("BEGIN")
        empty = dict.fromkeys(("display_name", "source", "instances"), "")
        ids = ((number, f"{number:08x}") for number in range(10_000))
        rows = (
            (text, float(number), json.dumps({"id": text, "name": "digits", "status": "Failed", **empty}), "{}")
            for number, text in ids
        )
        store.connection.executemany("INSERT INTO run VALUES (?, ?, ?, ?)", rows)
    read: list[object] = []
    true_state = stored._with_true_state
    monkeypatch.setattr(stored, "_with_true_state", lambda run, *place: (read.append(run), true_state(run, *place))[1])
    assert [run.id for run in stored.runs(place, 2, statuses=(Status.FAILED,))] == ["0000270f", "0000270e"]
    assert len(read) == 2


def test_after_the_clock_was_set_back_the_latest_is_the_last(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "w")
    place.make()
    with Store(place.database) as store:
        for identity, created in (("first", 2e9), ("second", 1e9), ("third", 1.5e9)):
            store.add_run(record(identity, "digits", created), "{}")
        assert store.find("latest") == "third"
    assert [run.id for run in stored.runs(place)] == ["third", "second", "first"]
