"""MLflow's database is created at once, complete, and as MLflow creates it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from allranks.local.tracking import tracker

CREATE = """
import os, sys
os.chdir(sys.argv[1])
from allranks.local.tracking import tracker
client = tracker.import_client()
for how in ("quickly", "as usual"):
    os.makedirs(how)
    if how == "quickly":
        tracker.create_database(client, f"sqlite:///{how}/mlflow.db")
        assert os.path.exists("quickly/mlflow.db")
    client(f"sqlite:///{how}/mlflow.db").create_experiment("kept")
"""


def objects(database: Path) -> dict[str, list[str]]:
    """Return the tables and indexes, each with the sorted lines of its definition: the order of constraints varies."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select name, sql from sqlite_master").fetchall()
    return {name: sorted(line.strip().rstrip(",") for line in (sql or "").splitlines()) for name, sql in rows}


@pytest.mark.mlflow
@pytest.mark.slow
def test_it_is_as_mlflow_creates_it(tmp_path: Path) -> None:
    folder = tmp_path / "a workspace"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", CREATE, str(folder)], check=True, capture_output=True)
    assert sorted(map(str, (path.relative_to(folder) for path in folder.rglob("*.*")))) == [
        "as usual/mlflow.db",
        "quickly/mlflow.db",
    ]
    quickly, as_usual = folder / "quickly/mlflow.db", folder / "as usual/mlflow.db"
    assert objects(quickly) == objects(as_usual)
    with sqlite3.connect(quickly) as connection:
        assert connection.execute("pragma journal_mode").fetchall() == [("delete",)]
        assert ("kept",) in connection.execute("select name from experiments").fetchall()


def test_an_existing_one_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("existing")
    tracker.create_database(pytest.fail, f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert (tmp_path / "mlflow.db").read_text() == "existing"


def test_one_of_a_faster_process_is_kept(tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"

    def slow(uri: str) -> None:
        Path(uri.removeprefix("sqlite:///")).write_text("ours")
        database.write_text("theirs")

    tracker.create_database(slow, f"sqlite:///{database}")
    assert database.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["mlflow.db"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def failing(uri: str) -> None:
        Path(uri.removeprefix("sqlite:///")).write_text("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        tracker.create_database(failing, f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert os.listdir(tmp_path) == []


def test_a_server_has_its_own_database(tmp_path: Path) -> None:
    tracker.create_database(pytest.fail, "postgresql://localhost/mlflow")


def test_its_places_move_with_the_workspace(tmp_path: Path) -> None:
    tables = {"experiments": "artifact_location", "runs": "artifact_uri", "model_versions": "source"}
    tables |= {"logged_models": "artifact_location"}
    places = ["file:///gone/mlflow/exp/run", f"file://{tmp_path}/mlflow/exp", "s3://bucket/mlflow/exp"]
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection, connection:
        for table, column in tables.items():
            more = ", storage_location TEXT" if table == "model_versions" else ""
            connection.execute(f"CREATE TABLE {table} ({column} TEXT{more})")
            connection.executemany(f"INSERT INTO {table} ({column}) VALUES (?)", [(place,) for place in places])
        connection.commit()
        tracker.relocate(tmp_path / "mlflow.db")
        for table, column in tables.items():
            found = [place for (place,) in connection.execute(f"SELECT {column} FROM {table}")]
            assert found == [f"file://{tmp_path}/mlflow/exp/run", *places[1:]]
