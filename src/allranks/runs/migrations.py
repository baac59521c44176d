"""The tables of a store, and the migration of stores of earlier versions."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from typing import Any

from allranks.runs import assets, usage_table

VERSION = 3
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
            _execute(connection, TABLES + assets.TABLE + usage_table.TABLE)
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
    """Migrate from version 1, which had steps instead of nodes, and plans that were a flat list of steps."""
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
    """Return a plan of version 1 as one of version 2."""
    nodes = [_node(step) for step in plan.pop("steps")]
    outputs = [{**output, "source": _output_of(output["source"])} for output in plan.pop("outputs")]
    return {**plan, "graph": {"nodes": nodes, "inputs": plan.pop("inputs"), "outputs": outputs}}


def _node(step: dict[str, Any]) -> dict[str, Any]:
    step.pop("unsent_environment", None)
    inputs = [{**port, "value": _value(port["value"])} for port in step["inputs"]]
    return {**step, "kind": "Step", "environment": _environment(step.get("environment", "")), "inputs": inputs}


def _value(value: Any) -> Any:
    """Return what is bound to an input, with references by their names of version 2."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "PipelineInput":
        return {**value, "kind": "GraphInput"}
    if kind == "StepOutput":
        return _output_of(value)
    if kind == "Text":
        return {**value, "parts": [_value(part) for part in value["parts"]]}
    return value


def _output_of(reference: dict[str, Any]) -> dict[str, Any]:
    fields = {"node": reference["step"], "name": reference["name"]}
    return {"kind": "NodeOutput", **fields} if "kind" in reference else fields


def _environment(text: str) -> dict[str, str]:
    """Return an environment of version 1, a text such as ``azureml:torch:3`` or ``torch:3, image ubuntu, conda 1f0c``,
    by its parts."""
    parts_by_name: dict[str, str] = {}
    for number, part in enumerate(filter(None, text.split(", "))):
        key, _, value = part.partition(" ")
        if key in ("image", "conda"):
            parts_by_name[key] = value
        elif key == "build":
            parts_by_name["context"], _, parts_by_name["dockerfile"] = value.partition(" ")
        elif number == 0:
            parts_by_name |= _name(part)
    return parts_by_name


def _name(text: str) -> dict[str, str]:
    match = re.fullmatch(
        r"(?:azureml://registries/(?P<registry>[^/]+)/environments/|azureml:)?(?P<name>[^:@/]+)"
        r"(?:(?::|/versions/)(?P<version>[^:@/]+)|(?:@|/labels/)(?P<label>[^:@/]+))?",
        text,
    )
    if match is None:
        return {"name": text}
    version = match["version"] or (f"@{match['label']}" if match["label"] else "")
    return {"name": match["name"], "version": version, "registry": match["registry"] or ""}


def _to_3(connection: sqlite3.Connection) -> None:
    """Migrate from version 2, which had no samples of resource usage."""
    _execute(connection, usage_table.TABLE)


_STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _to_2, 2: _to_3}
"""By version, the migration to the next one."""
