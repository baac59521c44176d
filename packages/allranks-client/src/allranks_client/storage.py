"""The storage account of a workspace folder: azure-ai-ml's client of a container, on files."""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from allranks.history import datastores
from allranks.workspace import Workspace, write_file
from allranks_client.sdk_parts import BlobStorageClient

UPLOADS = "LocalUpload"
"""The folder of a datastore for uploads of the SDK."""

_NOT_ARTIFACTS = ("named-outputs", "instances")
"""Folders of a step that are not part of its artifacts."""


@dataclass
class LocalFolder:
    """The folder of a workspace, or of a registry in it.

    workspace: the folder that contains assets, jobs and schedules
    registry:  the name of the registry whose folder this is; "" for the workspace's
    home:      the folder of the workspace, which contains those of its registries
    account:   the name of the storage account, one for each folder
    """

    workspace: Workspace
    registry: str = field(default="", kw_only=True)

    @property
    def home(self) -> Workspace:
        return Workspace(self.workspace.root.parents[1]) if self.registry else self.workspace

    @property
    def account(self) -> str:
        return f"allranks{hashlib.sha256(str(self.workspace.root).encode()).hexdigest()[:12]}"


_Base: Any = BlobStorageClient


class LocalContainer(_Base):  # type: ignore[misc]
    """A container of the account, with the methods of `BlobStorageClient` that azure-ai-ml calls.

    container: a datastore, or the container of one upload of code, which has no other content
    """

    def __init__(self, workspace: Workspace, container: str) -> None:
        self._workspace, self.container = workspace, container
        self.account_name, self.indicator_file = "", None

    def upload(
        self,
        source: str,
        name: str,
        version: str,
        ignore_file: Any = None,
        asset_hash: str | None = None,
        show_progress: bool = True,
    ) -> dict[str, Any]:
        """Copy a file or a folder. Content that was uploaded before is not copied again, and keeps its name."""
        is_datastore = self.container in datastores.NAMES
        place = PurePosixPath(UPLOADS, asset_hash or uuid.uuid4().hex) if is_datastore else PurePosixPath()
        folder = datastores.folder(self._workspace, self.container) / place
        record = folder.with_name(f"{folder.name}.json")
        if record.exists():
            name, version = json.loads(record.read_text(encoding="utf-8"))
        else:
            # An interrupted copy stays beside the target.
            part = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
            _copy(Path(source), part / Path(source).name, ignore_file)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
            version = version or str(uuid.uuid4())
            record.write_text(json.dumps([name, version]), encoding="utf-8")
        path = place / Path(source).name
        return {"remote path": str(path), "name": name, "version": version, "indicator file": None}

    def download(self, starts_with: str, destination: Any = ".", max_concurrency: int = 0) -> None:
        """Copy the files at a path to a folder, as `BlobStorageClient.download` does."""
        for name, file in self._files_at(starts_with):
            target = Path(destination, name or Path(starts_with).name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)

    def list(self, starts_with: str) -> list[str]:
        """Return the paths of the files below a path."""
        return [f"{starts_with.rstrip('/')}/{name}" for name, _ in self._files_at(starts_with)]

    def exists(self, blobpath: str, delimiter: str = "/") -> bool:
        """Return whether there is a file or a folder at a path."""
        return datastores.path_of(self._workspace, self.container, blobpath) is not None

    def _files_at(self, path: str) -> Iterator[tuple[str, Path]]:
        """Yield the files at a path. The artifacts of a job are not its named outputs."""
        source = datastores.path_of(self._workspace, self.container, path)
        for name, file in _files(source) if source else ():
            if self.container != datastores.ARTIFACTS or name.partition("/")[0] not in _NOT_ARTIFACTS:
                yield name, file


def write_json(file: Path, value: Any) -> None:
    """Write a file for this user atomically, so that a reader never sees a part of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, json.dumps(value, indent=1), 0o600)


def _copy(source: Path, target: Path, ignore_file: Any) -> None:
    """Copy a file, or the files of a folder that the SDK would upload."""
    names = {""} if source.is_file() else None
    for name, file in _files(source):
        if names is None and ignore_file is not None and ignore_file.is_file_excluded(file):
            continue
        place = target / name if name else target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a path with their relative names; the name of the path itself, if it is a file, is ""."""
    if path.is_file():
        yield "", path
        return
    for folder, folders, files in os.walk(path, followlinks=True):
        folders.sort()
        for name in sorted(files):
            file = Path(folder, name)
            if file.is_file():
                yield file.relative_to(path).as_posix(), file
