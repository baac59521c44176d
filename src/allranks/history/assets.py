"""Store what was registered on this machine: data, components and environments with their versions.

Models are in MLflow's registry, because training code registers them there.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

TABLE = """
CREATE TABLE asset (kind TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, path TEXT NOT NULL,
    created REAL NOT NULL, PRIMARY KEY (kind, name, version)) STRICT;
"""


@dataclass(frozen=True)
class RegisteredAsset:
    """One version of an asset.

    kind:    data, component or environment
    path:    absolute: the data itself, or the YAML file of a component or an environment
    created: seconds since the epoch
    """

    kind: str
    name: str
    version: str
    path: Path
    created: float


def add(connection: sqlite3.Connection, asset: RegisteredAsset) -> None:
    """Register a version. Registering the same version with the same path again is allowed.

    Raise InputError if the version is registered with a different path: a version never changes.
    """
    existing = get(connection, asset.kind, asset.name, asset.version)
    if existing is not None and existing.path != asset.path:
        where = f"{asset.kind} {asset.name}:{asset.version}"
        found = f"this version is registered already, with {existing.path}"
        fix = f"register version {next_version(connection, asset.kind, asset.name)}"
        raise InputError(Problem(where, found, "a new version", fix))
    # What is in the workspace moves with it.
    root, path = _workspace(connection), asset.path
    stored = str(path.relative_to(root) if path.is_relative_to(root) else path)
    connection.execute(
        "INSERT OR IGNORE INTO asset VALUES (?, ?, ?, ?, ?)",
        (asset.kind, asset.name, asset.version, stored, asset.created),
    )


def register(connection: sqlite3.Connection, kind: str, asset: str, path: Path) -> RegisteredAsset:
    """Register a path as NAME:VERSION, or as the next version of NAME unless it is the latest one already. Return the
    version. Raise as `add`."""
    name, _, version = asset.partition(":")
    last = latest(connection, kind, name)
    if not version and last is not None and last.path == path:
        return last
    new = RegisteredAsset(kind, name, version or next_version(connection, kind, name), path, time.time())
    with connection:
        add(connection, new)
    return new


def get(connection: sqlite3.Connection, kind: str, name: str, version: str) -> RegisteredAsset | None:
    """Return a version, or None."""
    return next((asset for asset in versions(connection, kind, name) if asset.version == version), None)


def latest(connection: sqlite3.Connection, kind: str, name: str) -> RegisteredAsset | None:
    """Return the version that was registered last, like ``@latest`` on Azure ML, or None."""
    return next(iter(versions(connection, kind, name)), None)


def versions(connection: sqlite3.Connection, kind: str, name: str) -> tuple[RegisteredAsset, ...]:
    """Return every version of a name, the one that was registered last first."""
    rows = connection.execute(
        "SELECT version, path, created FROM asset WHERE kind = ? AND name = ? ORDER BY rowid DESC",
        (kind, name),
    )
    root = _workspace(connection)
    return tuple(RegisteredAsset(kind, name, version, root / path, created) for version, path, created in rows)


def _workspace(connection: sqlite3.Connection) -> Path:
    return Path(connection.execute("PRAGMA database_list").fetchone()[2]).parent


def names(connection: sqlite3.Connection, kind: str) -> tuple[str, ...]:
    """Return the names that are registered, sorted."""
    rows = connection.execute("SELECT DISTINCT name FROM asset WHERE kind = ? ORDER BY name", (kind,))
    return tuple(row[0] for row in rows)


def next_version(connection: sqlite3.Connection, kind: str, name: str) -> str:
    """Return the version for an asset without one: one more than the highest integer version, as on Azure ML."""
    numbers = [int(asset.version) for asset in versions(connection, kind, name) if asset.version.isdecimal()]
    return str(max(numbers, default=0) + 1)
