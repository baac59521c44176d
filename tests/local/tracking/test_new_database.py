"""MLflow's database is created at once and complete."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from allranks.local.tracking import tracker


def _create_table(uri: str) -> None:
    with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("CREATE TABLE runs (artifact_uri TEXT)")


def test_an_existing_one_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("existing")
    tracker.create_database(pytest.fail, tmp_path / "mlflow.db")
    assert (tmp_path / "mlflow.db").read_text() == "existing"


def test_a_new_one_has_its_tables(tmp_path: Path) -> None:
    tracker.create_database(_create_table, tmp_path / "new" / "mlflow.db")
    with closing(sqlite3.connect(tmp_path / "new" / "mlflow.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]


def test_one_of_a_faster_process_is_kept(tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"

    def slow(uri: str) -> None:
        _create_table(uri)
        database.write_text("theirs")

    tracker.create_database(slow, database)
    assert database.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["mlflow.db"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def failing(uri: str) -> None:
        _create_table(uri)
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        tracker.create_database(failing, tmp_path / "mlflow.db")
    assert os.listdir(tmp_path) == []


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
