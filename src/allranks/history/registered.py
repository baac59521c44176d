"""Assets that were registered on this machine: data, components and environments in the store, with their versions.

Models are in the workspace's MLflow registry, where training code registers them.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from allranks.errors import InputError, Problem
from allranks.history import datastores
from allranks.plan.assets import asset_id
from allranks.plan.assets.asset_id import LATEST, AssetId
from allranks.plan.assets.lookup import NOTHING, Registered, Registration
from allranks.workspace import Workspace, check_access

_Reader: TypeAlias = Callable[[sqlite3.Connection, AssetId], Registration]


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
    known = versions(connection, asset.kind, asset.name)
    existing = next((each.path for each in known if each.version == asset.version), asset.path)
    if existing != asset.path:
        where = f"{asset.kind} {asset.name}:{asset.version}"
        found = f"this version is registered already, with {existing}"
        raise InputError(Problem(where, found, "a new version", f"register version {_next(known)}"))
    # A path in the workspace is stored relative to it, so that the workspace may be moved.
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
    known = versions(connection, kind, name)
    if not version and known and known[0].path == path:
        return known[0]
    new = RegisteredAsset(kind, name, version or _next(known), path, time.time())
    with connection:
        add(connection, new)
    return new


def versions(connection: sqlite3.Connection, kind: str, name: str) -> tuple[RegisteredAsset, ...]:
    """Return every version of a name, the last registered first, which is ``@latest`` on Azure ML too."""
    rows = connection.execute(
        "SELECT version, path, created FROM asset WHERE kind = ? AND name = ? ORDER BY rowid DESC", (kind, name)
    )
    root = _workspace(connection)
    return tuple(RegisteredAsset(kind, name, version, root / path, created) for version, path, created in rows)


def names(connection: sqlite3.Connection, kind: str) -> tuple[str, ...]:
    """Return the registered names, sorted."""
    rows = connection.execute("SELECT DISTINCT name FROM asset WHERE kind = ? ORDER BY name", (kind,))
    return tuple(row[0] for row in rows)


def _next(known: tuple[RegisteredAsset, ...]) -> str:
    """Return the version of an asset without one: the highest integer version plus one, as on Azure ML."""
    return str(max((int(each.version) for each in known if each.version.isdecimal()), default=0) + 1)


def _workspace(connection: sqlite3.Connection) -> Path:
    return Path(connection.execute("PRAGMA database_list").fetchone()[2]).parent


def of(workspace: Workspace) -> Registered:
    """Return a function that finds registered assets in a workspace, as `find` does."""
    return partial(find, workspace)


def find(workspace: Workspace, asset: AssetId) -> Registration:
    """Return the registration of an id in the workspace. An id without version and label means the latest version.

    Raise InputError if the workspace's files cannot be read.
    """
    if asset.registry:
        return find(workspace.registry(asset.registry), replace(asset, registry=""))
    if asset.kind == asset_id.DATASTORE:
        return Registration(datastores.path_of(workspace, asset.name, asset.path), ())
    if asset.kind == asset_id.STORAGE:
        return Registration(datastores.path_of_uri(workspace, asset.path), ())
    if asset.kind == asset_id.MODEL:
        tracked = _in_database(workspace.root / "mlflow.db", asset, "model_versions", _model)
        if tracked.path:
            return tracked
        stored = _in_database(workspace.database, asset, "asset", _asset)
        return Registration(stored.path, (*tracked.versions, *stored.versions))
    return _in_database(workspace.database, asset, "asset", _asset)


def model_names(workspace: Workspace) -> tuple[str, ...]:
    """Return the names of the models in the workspace's MLflow registry."""

    def read(connection: sqlite3.Connection, _: AssetId) -> Registration:
        rows = connection.execute("SELECT DISTINCT name FROM model_versions WHERE current_stage != 'Deleted_Internal'")
        return Registration(None, tuple(str(row[0]) for row in rows))

    return _in_database(workspace.root / "mlflow.db", AssetId(asset_id.MODEL), "model_versions", read).versions


def _in_database(database: Path, asset: AssetId, table: str, read: _Reader) -> Registration:
    if not database.is_file():
        return NOTHING
    check_access(database)
    try:
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            connection.execute("PRAGMA query_only = ON")
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
            return read(connection, asset) if tables.fetchone() else NOTHING
    except sqlite3.Error as error:
        fix = "use another folder: --folder DIR; or restore a copy of the file; or move it away"
        found, expected = f"cannot be read: {error}", "the database of a workspace"
        raise InputError(Problem(str(database), found, expected, fix)) from None


def _asset(connection: sqlite3.Connection, asset: AssetId) -> Registration:
    known = versions(connection, asset.kind, asset.name)
    if asset.version:
        matches = [each.path for each in known if each.version == asset.version]
    else:
        matches = [each.path for each in known[:1] if asset.label in ("", LATEST)]
    return Registration(next(iter(matches), None), tuple(each.version for each in known))


def _model(connection: sqlite3.Connection, asset: AssetId) -> Registration:
    rows = dict(
        connection.execute(
            "SELECT CAST(version AS TEXT), COALESCE(storage_location, source) FROM model_versions"
            " WHERE name = ? AND current_stage != 'Deleted_Internal' ORDER BY version DESC",
            (asset.name,),
        )
    )
    version: str | None = asset.version
    aliases = "SELECT CAST(version AS TEXT) FROM registered_model_aliases WHERE name = ? AND alias = ?"
    if asset.label and (alias := connection.execute(aliases, (asset.name, asset.label)).fetchone()):
        version = alias[0]
    elif asset.label in ("", LATEST) and not asset.version:
        version = next(iter(rows), None)
    path = _files(connection, rows[version]) if version in rows else None
    return Registration(path, tuple(rows))


def _files(connection: sqlite3.Connection, source: str) -> Path | None:
    """Return the folder of a model version for a URI of MLflow; None if it is not on this machine."""
    paths = (path for uri in _places(connection, source) for path in _local(uri))
    return next((path for path in paths if path.is_absolute() and path.exists()), None)


def _places(connection: sqlite3.Connection, source: str) -> Iterator[str]:
    if source.startswith("models:/"):
        model = source.removeprefix("models:/")
        rows = connection.execute("SELECT artifact_location FROM logged_models WHERE model_id = ?", (model,))
        yield from (row[0] for row in rows)
    elif source.startswith("runs:/"):
        run, _, path = source.removeprefix("runs:/").partition("/")
        rows = connection.execute("SELECT artifact_uri FROM runs WHERE run_uuid = ?", (run,))
        yield from (f"{row[0]}/{path}" for row in rows)
    else:
        yield source


def _local(uri: str) -> Iterator[Path]:
    if uri.startswith("file://"):
        # MLflow writes URIs of files with and without quoting.
        yield Path(uri.removeprefix("file://"))
        yield Path(unquote(urlsplit(uri).path))
    elif "://" not in uri:
        yield Path(uri)
