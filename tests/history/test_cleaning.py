"""What can be removed from a workspace, and what has to stay."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.history import locks, registered, stored
from allranks.history.cleaning import LEFTOVER, RUN, SNAPSHOT, CleaningPlan, clean, plan_cleaning
from allranks.history.records import RunRecord, Status
from allranks.history.registered import RegisteredAsset
from allranks.history.store import Store
from allranks.plan.graph import Code, Step
from allranks.plan.ports import Output
from allranks.workspace import Workspace

Runs = Callable[..., RunRecord]
LATER = time.time() + 10 * 86400
STEP = Step("a", "echo x > ${{outputs.out}}/f", outputs=(Output("out", "uri_folder"),))
OTHER = replace(STEP, command="echo y > ${{outputs.out}}/f")


def planned(workspace: Workspace, keep: int = 0, **options: object) -> CleaningPlan:
    """What can be removed ten days from now."""
    return plan_cleaning(workspace, before=LATER, keep=keep, now=LATER, **options)  # type: ignore[arg-type]


def names(plan: CleaningPlan, kind: str) -> set[str]:
    return {removal.path.name for removal in plan.removals if removal.kind == kind}


def test_a_workspace_that_does_not_exist_has_nothing(workspace: Workspace) -> None:
    assert planned(workspace) == CleaningPlan()
    assert not workspace.root.exists()


def test_a_run_goes_with_everything_that_belongs_to_it(workspace: Workspace, run_steps: Runs) -> None:
    record = run_steps(STEP)
    with Store(workspace.database) as store:
        store.add_decision(record.id, "a", "k", "v")
        store.add_cancellation(record.id, "a")
        store.connection.execute("INSERT INTO point VALUES (?, 'a', 'loss', 1, 1.0, 1.0)", (record.id,))
        store.connection.execute("INSERT INTO usage VALUES (?, 'a', 0, 1.0, '[]')", (record.id,))
        tables = [name for (name,) in store.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        by_run = {
            table: "run" if any(row[1] == "run" for row in columns) else "id"
            for table in tables
            if (columns := store.connection.execute(f"PRAGMA table_info({table})").fetchall())
            and ({"run"} & {row[1] for row in columns} or table == "run")
        }
        counts = [f"SELECT count(*) FROM {table} WHERE {column} = ?" for table, column in by_run.items()]
        assert len(by_run) == 7
        assert all(store.connection.execute(text, (record.id,)).fetchone()[0] for text in counts)
        plan = planned(workspace)
        assert (names(plan, RUN), plan.size > 0) == ({record.id}, True)
        assert clean(workspace, plan) == list(plan.removals)
        assert not any(store.connection.execute(text, (record.id,)).fetchone()[0] for text in counts)
    assert not Path(record.folder).exists()
    assert run_steps(STEP).step("a").reused_from is None


def test_the_newest_and_the_young_stay(workspace: Workspace, run_steps: Runs) -> None:
    first, second = run_steps(STEP), run_steps(OTHER)
    assert names(planned(workspace, keep=1), RUN) == {first.id}
    assert names(plan_cleaning(workspace, before=second.created), RUN) == {first.id}
    assert planned(workspace, keep=2) == CleaningPlan()


def test_a_run_stays_whose_results_one_that_stays_reuses(workspace: Workspace, run_steps: Runs) -> None:
    first, other, second = run_steps(STEP), run_steps(OTHER), run_steps(STEP)
    plan = planned(workspace, keep=1)
    assert names(plan, RUN) == {other.id}
    assert [(run.id, reason) for run, reason in plan.kept] == [(first.id, f"run {second.id} reuses its results")]
    assert names(planned(workspace), RUN) == {first.id, other.id, second.id}


def test_a_run_that_came_to_be_reused_after_the_plan_was_made_stays(workspace: Workspace, run_steps: Runs) -> None:
    first = run_steps(STEP)
    plan = planned(workspace)
    second = run_steps(STEP)
    assert clean(workspace, plan) == []
    assert {run.id for run in stored.runs(workspace)} == {first.id, second.id}
    assert run_steps(STEP).step("a").reused_from == first.id


def test_a_run_that_is_executed_stays(workspace: Workspace, run_steps: Runs) -> None:
    record = run_steps(STEP)
    late = planned(workspace)
    with locks.hold(workspace.run_folder(record.id)):
        plan = planned(workspace)
        assert names(plan, RUN) == set()
        assert [reason for _, reason in plan.kept] == ["a process executes it"]
        assert clean(workspace, late) == []
    assert [run.id for run in stored.runs(workspace)] == [record.id]


def test_a_run_whose_data_is_registered_stays(workspace: Workspace, run_steps: Runs) -> None:
    record = run_steps(STEP)
    path = Path(record.step("a").outputs[0].path)
    with Store(workspace.database) as store:
        registered.add(store.connection, RegisteredAsset("data", "d", "1", path, 1.0))
    plan = planned(workspace)
    assert names(plan, RUN) == set()
    assert "registered" in plan.kept[0][1]


def test_snapshots_that_a_plan_needs_stay(workspace: Workspace, run_steps: Runs) -> None:
    workspace.make()
    for name in ("1" * 64, "2" * 64, "3" * 64):
        (workspace.snapshots / name).mkdir()
        (workspace.snapshots / name / "f").write_text(name)
    code = Code(str(workspace.snapshots / ("1" * 64)), "1" * 64)
    run_steps(replace(STEP, code=code))
    plans = [f'{{"folder": "{"2" * 64}"}}']
    plan = planned(workspace, keep=1, plans=plans)
    assert names(plan, SNAPSHOT) == {"3" * 64}
    clean(workspace, plan)
    assert sorted(path.name[0] for path in workspace.snapshots.iterdir()) == ["1", "2"]
    assert names(planned(workspace, plans=plans), SNAPSHOT) == {"1" * 64}


def test_folders_that_no_run_has_go_unless_they_are_recent(workspace: Workspace, run_steps: Runs) -> None:
    run_steps(STEP)
    for name in ("lost", "starting"):
        (workspace.run_folder(name)).mkdir()
    with locks.hold(workspace.run_folder("starting")):
        assert names(planned(workspace, keep=1), LEFTOVER) == {"lost"}
        assert plan_cleaning(workspace, before=LATER, keep=1) == CleaningPlan()
        clean(workspace, planned(workspace, keep=1))
    assert not workspace.run_folder("lost").exists()
    assert workspace.run_folder("starting").exists()


def test_another_run_cannot_be_taken_for_the_one_that_was_removed(workspace: Workspace, run_steps: Runs) -> None:
    record = run_steps(STEP)
    clean(workspace, planned(workspace))
    with pytest.raises(InputError, match="no such run"):
        stored.run(workspace, record.id)
    assert run_steps(STEP).status is Status.COMPLETED
    assert os.listdir(workspace.runs) == [stored.runs(workspace)[0].id]
