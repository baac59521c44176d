"""A store that an earlier version wrote: its runs can be listed, shown and resumed. What cannot be read stays as it is.

`data/store_v1.sql` is the dump of a store that version 1 wrote while it ran three times a pipeline of three steps (one
process, `mpi`, `pytorch`): one run is complete, one failed, of one the engine was killed while `train` ran. `@ROOT@`
stands for the folder of the pipeline.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.local.engine import resume
from allranks.local.options import Options
from allranks.plan import codec
from allranks.plan.environment import Environment, registered
from allranks.plan.graph import Step
from allranks.plan.ports import GraphInput, GraphOutput, NodeOutput, Text
from allranks.runs import history, migrations, usage_table
from allranks.runs.observer import Observer
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import Status
from allranks.runs.store import Store
from allranks.runs.usage import RankUsage, Sample
from allranks.runs.workspace import Workspace

COMPLETE, FAILED, KILLED = "8e7ec396", "5d6f7dc3", "8b9bb628"


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The workspace that version 1 left behind."""
    # MLflow takes seconds to start.
    monkeypatch.setattr("allranks.local.tracking.needed.find_spec", lambda _: None)
    workspace = Workspace(tmp_path / ".allranks")
    workspace.make()
    _load(workspace.database, tmp_path)
    return workspace


def _load(database: Path, root: Path) -> None:
    text = (Path(__file__).parent / "data" / "store_v1.sql").read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript(text.replace("@ROOT@", str(root)))


def test_the_runs_are_listed_and_shown(old: Workspace) -> None:
    assert [(run.id, run.status) for run in history.runs(old)] == [
        (KILLED, Status.INTERRUPTED),
        (FAILED, Status.FAILED),
        (COMPLETE, Status.COMPLETED),
    ]
    run = history.run(old, COMPLETE)
    assert [(step.name, step.kind, step.distribution, len(step.ranks)) for step in run.steps] == [
        ("prepare", "command", "none", 1),
        ("average", "command", "mpi", 4),
        ("train", "command", "pytorch", 2),
    ]
    assert run.step("prepare").outputs[1].value == "3\n"
    assert run.outputs == {"model": str(old.runs / COMPLETE / "train/named-outputs/model")}
    assert history.run(old, FAILED).verdict.exit_code == 3
    assert old.database.stat().st_mode & 0o777 == 0o600


def test_the_plans_are_graphs(old: Workspace) -> None:
    with Store(old.database) as store:
        plan = codec.loads(store.plan(COMPLETE))
    prepare, average, train = plan.graph.nodes
    assert isinstance(prepare, Step)
    assert isinstance(average, Step)
    assert isinstance(train, Step)
    assert [step.environment for step in (prepare, average, train)] == [
        registered("azureml:torch:3"),
        Environment(image="python:3.12"),
        registered("azureml:torch@latest"),
    ]
    assert (average.distribution, average.instance_count) == (Mpi(2), 2)
    assert train.distribution == PyTorch(2)
    assert train.environment_variables == {"step": "one", "name": "two"}
    assert [port.value for port in train.inputs] == [
        GraphInput("lr"),
        NodeOutput("prepare", "data"),
        Text(("lr-", GraphInput("lr"))),
    ]
    assert plan.graph.outputs == (GraphOutput("model", NodeOutput("train", "model")),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Environment()),
        ("azureml:torch", Environment("torch")),
        (
            "azureml://registries/azureml/environments/acpt/versions/7",
            Environment("acpt", version="7", registry="azureml"),
        ),
        (
            "torch:3, image ubuntu:22.04, conda 1f0c",
            Environment("torch", version="3", image="ubuntu:22.04", conda="1f0c"),
        ),
        (
            "torch, build 8d2e docker/Dockerfile",
            Environment("torch", context="8d2e", dockerfile="docker/Dockerfile"),
        ),
    ],
)
def test_environments_by_their_parts(text: str, expected: Environment) -> None:
    assert Environment(**migrations._environment(text)) == expected


def test_a_run_is_resumed(old: Workspace) -> None:
    with Store(old.database) as store:
        train = codec.loads(store.plan(KILLED)).graph.by_name["train"]
    assert isinstance(train, Step)
    assert train.code is not None
    os.makedirs(train.code.folder)
    Path(train.code.folder, "train.sh").write_text("echo $1 $4 > $2/model.txt\n", encoding="utf-8")
    data = old.runs / KILLED / "prepare/named-outputs/data"
    data.mkdir(parents=True)
    record = resume(KILLED, old, Options(instances="loopback"))
    assert record.status is Status.COMPLETED, record.verdict
    assert [(step.name, step.attempt) for step in record.steps] == [("prepare", 0), ("average", 0), ("train", 1)]
    assert Path(record.outputs["model"], "model.txt").read_text() == "0.5 lr-0.5\n"


def test_a_store_of_a_later_version_is_refused(old: Workspace) -> None:
    with contextlib.closing(sqlite3.connect(old.database)) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    before = old.database.read_bytes()
    with pytest.raises(InputError, match=f"a store of version {migrations.VERSION + 1}, this is version") as error:
        Store(old.database)
    assert "move allranks.db away" in str(error.value)
    assert old.database.read_bytes()[100:] == before[100:]  # the header says how it was opened


@pytest.mark.parametrize("broken", ["[]", '{"steps": [{}]}', "no JSON"])
def test_a_store_that_cannot_be_brought_up_to_date_stays_as_it_is(old: Workspace, broken: str) -> None:
    with contextlib.closing(sqlite3.connect(old.database)) as connection, connection:
        connection.execute("UPDATE run SET plan = ? WHERE id = ?", (broken, KILLED))
    before = _content(old.database)
    with pytest.raises(InputError, match="a store of version 1 with a plan that cannot be read"):
        Store(old.database)
    assert _content(old.database) == before


def test_a_migration_that_is_cut_off_leaves_the_old_tables(old: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(plan: object) -> None:
        raise KeyboardInterrupt

    before = _content(old.database)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "_recursive", cut_off)
        with pytest.raises(KeyboardInterrupt):
            Store(old.database)
    assert _content(old.database) == before
    assert {run.id for run in history.runs(old)} == {COMPLETE, FAILED, KILLED}


def test_a_store_of_version_2_gets_the_samples_of_resource_usage(
    old: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(sqlite3.connect(old.database, isolation_level=None)) as connection:
        with monkeypatch.context() as patched:
            patched.setattr(migrations, "VERSION", 2)
            migrations.migrate(connection, 1)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        before = [line for line in connection.iterdump() if line.startswith("INSERT")]
    with Store(old.database) as store:
        record = store.run(COMPLETE)
        step = record.step("train")
        assert [rank.cpu_seconds for rank in step.ranks] == [None, None]
        RunRecorder(record, store, Observer()).add_sample(step, 0, Sample(1.0, {0: RankUsage(0.5, 100)}))
        step.usage = {}
        usage_table.load(store.connection, COMPLETE, record.steps)
        assert step.usage == {0: [Sample(1.0, {0: RankUsage(0.5, 100)})]}
        assert {"usage", "usage_of_node"} <= {
            name for (name,) in store.connection.execute("SELECT name FROM sqlite_schema")
        }
    after = [line for line in _content(old.database) if line.startswith("INSERT") and '"usage"' not in line]
    assert after == before


def test_another_process_may_have_migrated_it_meanwhile(old: Workspace) -> None:
    with Store(old.database) as store:
        before = _content(old.database)
        migrations.migrate(store.connection, 1)  # this one read the version before the other one was done
        assert _content(old.database) == before


def _content(database: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        return [*connection.iterdump(), str(connection.execute("PRAGMA user_version").fetchone())]
