"""The tables of a store, and the migration of stores of earlier versions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from allranks.runs import assets

VERSION = 2
"""Version of the tables below. A store of a later version is rejected."""

TABLES = """
CREATE TABLE run (id TEXT PRIMARY KEY, created REAL NOT NULL, record TEXT NOT NULL, plan TEXT NOT NULL) STRICT;
CREATE TABLE node (
    run TEXT NOT NULL REFERENCES run, position INTEGER NOT NULL, path TEXT NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (run, path)) STRICT;
CREATE TABLE decision (
    run TEXT NOT NULL REFERENCES run, path TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, path, key)) STRICT;
CREATE TABLE point (
    run TEXT NOT NULL, node TEXT NOT NULL, metric TEXT NOT NULL, x INTEGER NOT NULL, value REAL, time REAL NOT NULL)
    STRICT;
CREATE INDEX point_of_node ON point (run, node);
CREATE TABLE result (key TEXT PRIMARY KEY, run TEXT NOT NULL, node TEXT NOT NULL) STRICT;
CREATE TABLE cancellation (run TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (run, path)) STRICT;
"""
"""decision: what a control node decided, written before it takes effect. cancellation: nodes that a user cancels during
the run"""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate a store of an earlier version in one transaction.

    version: of the store; 0 for an empty file
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated it.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            _execute(connection, TABLES + assets.TABLE)
        for step in range(version, VERSION) if version else ():
            _STEPS[step](connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _execute(connection: sqlite3.Connection, script: str) -> None:
    # executescript would commit the transaction.
    for statement in filter(str.strip, script.split(";")):
        connection.execute(statement)


def _to_2(connection: sqlite3.Connection) -> None:
    """Version 1 had steps instead of nodes, and plans that were a flat list of steps."""
    _execute(
        connection,
        """
        ALTER TABLE step RENAME TO node;
        ALTER TABLE node RENAME COLUMN name TO path;
        ALTER TABLE point RENAME COLUMN step TO node;
        ALTER TABLE result RENAME COLUMN step TO node;
        DROP INDEX point_of_step;
        CREATE INDEX point_of_node ON point (run, node);
        CREATE TABLE decision (
            run TEXT NOT NULL REFERENCES run, path TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (run, path, key)) STRICT;
        CREATE TABLE cancellation (run TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (run, path)) STRICT
        """,
    )
    _execute(connection, assets.TABLE)
    for identity, plan in connection.execute("SELECT id, plan FROM run").fetchall():
        recursive = json.dumps(_recursive(json.loads(plan)))
        connection.execute("UPDATE run SET plan = ? WHERE id = ?", (recursive, identity))


def _recursive(plan: dict[str, Any]) -> dict[str, Any]:
    """Convert a plan of version 1 to one of version 2."""
    nodes = [_node(step) for step in plan.pop("steps")]
    graph = {"nodes": nodes, "inputs": plan.pop("inputs"), "outputs": plan.pop("outputs")}
    changed: dict[str, Any] = _renamed({**plan, "graph": graph})
    return changed


def _node(step: dict[str, Any]) -> dict[str, Any]:
    environment = step.pop("environment", "")
    step.pop("unsent_environment", None)
    return {**step, "kind": "Step", "environment": {"name": environment.removeprefix("azureml:")}}


def _renamed(value: Any) -> Any:
    """Rename references of version 1."""
    if isinstance(value, list):
        return [_renamed(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {key: _renamed(part) for key, part in value.items()}
    if found.get("kind") == "PipelineInput":
        found["kind"] = "GraphInput"
    if found.get("kind") == "StepOutput" or found.keys() == {"step", "name"}:
        found["node"] = found.pop("step")
        if "kind" in found:
            found["kind"] = "NodeOutput"
    return found


_STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _to_2}
"""By version, the migration to the next one."""
