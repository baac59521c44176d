"""Storage services, by way of fsspec: list, read and write what a URI names, with the user's own credentials.

The credentials are those that the service's library finds: environment variables, files of the command lines, managed
identities, a signature in the URI.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from allranks.plan.file_tree import Stop, StoppedError, check
from allranks.secrets import redact

# What it logs of a missing login is in its error too. Handlers of the user's own still get it.
logging.getLogger("azure").addHandler(logging.NullHandler())

MARKER = "_SUCCESS"
"""The empty object that is written last into an uploaded folder, as Spark does: a folder without it is not whole."""

_AZURE = "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and log in: az login"
_AWS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_SERVICES = {
    ("http", "https"): ("http", "use a URL that needs no credentials, such as one with a SAS token"),
    ("abfs", "abfss", "az", "wasb", "wasbs"): ("azure-storage", _AZURE),
    ("s3", "s3a"): ("s3", _AWS),
    ("gs", "gcs"): ("gs", "log in: gcloud auth application-default login"),
    ("hf",): ("hf", "log in: hf auth login"),
}
"""By the schemes of their URIs: the extra of allranks with the library, and where the library finds credentials."""

_VERSIONS = ("ETag", "etag", "md5Hash", "blob_id", "Last-Modified", "LastModified", "last_modified", "updated", "mtime")
"""What the libraries say of a file that changes with its content, the best first."""

_BLOB = re.compile(
    r"https://(?P<account>[^/.]+)\.blob\.core\.windows\.net/(?P<container>[^/?]+)/?(?P<path>[^?]*)\??(?P<token>.*)"
)

_CONNECTION_TIMEOUT = 5
"""Seconds to connect to a service."""

_DENIED = re.compile(r"\b(?:forbidden|unauthorized|access ?denied|authentication\w*|credentials?)\b", re.IGNORECASE)


class StorageError(OSError):
    """A service cannot be used, or lacks what was asked for.

    reason: what happened, without secrets
    fix:    what the user can do about it; "" if that is not known
    """

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix


@dataclass(frozen=True)
class RemoteFile:
    """A file of a service.

    path:    as the service's library names it
    size:    in bytes; None if the service does not say it
    version: changes with the content; "" if the service does not say it
    """

    path: str
    size: int | None = None
    version: str = ""


@dataclass(frozen=True)
class Remote:
    """What a URI names.

    is_file: whether it is one file, which is then the only one of `files`
    files:   by path relative to the folder, sorted
    """

    system: Any
    is_file: bool
    files: Mapping[str, RemoteFile] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of the files whose size is known."""
        return sum(file.size or 0 for file in self.files.values())

    def digest(self) -> str:
        """Return a digest of the names and versions of the files."""
        rows = [[name, file.size, file.version] for name, file in self.files.items()]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def find(uri: str, kind: str) -> Remote:
    """Return what a URI names. kind: the type of the port. Raise StorageError."""
    try:
        with _explained(uri):
            return _found(uri, kind)
    except StorageError as error:
        if "DefaultAzureCredential" not in error.reason:
            raise
        login = error
    try:  # no one is logged in, but the container may be public
        with _explained(uri):
            return _found(uri, kind, anon=True)
    except StorageError as error:
        raise (login if error.fix else error) from None


def _found(uri: str, kind: str, **options: Any) -> Remote:
    system, path = _opened(uri, is_folder=kind != "uri_file", **options)
    if hasattr(system, "service_client"):  # adlfs has no option for these: by default, an account that is not reached
        config = system.service_client._config  # or a login that is missing is tried again for minutes
        config.transport.connection_config.timeout = _CONNECTION_TIMEOUT
        config.retry_policy.connect_retries = 1
        config.retry_policy.initial_backoff, config.retry_policy.increment_base = 0.5, 0
        config.retry_policy.random_jitter_range = 0
    info = system.info(path) if kind == "uri_file" or not system.isdir(path) else None
    if info is None or info["type"] == "directory":
        return Remote(system, False, _listed(system, path))
    name = PurePosixPath(path.partition("?")[0]).name or "data"
    return Remote(system, True, {name: remote_file(info)})


def upload(source: Path, uri: str, stop: Stop | None = None) -> None:
    """Upload a file or folder. An object exists when all of it has been sent; a folder has its `MARKER` when it is
    whole.

    Raise StorageError, OSError, or StoppedError once `stop` is set.
    """
    try:
        with _explained(uri):
            system, path = _opened(uri)
            if source.is_file():
                system.put_file(str(source), path)
                return
            root = path.rstrip("/")
            if system.exists(f"{root}/{MARKER}"):
                system.rm_file(f"{root}/{MARKER}")
            for file in sorted(each for each in source.rglob("*") if each.is_file()):
                check(stop)
                system.put_file(str(file), f"{root}/{file.relative_to(source).as_posix()}")
            system.pipe_file(f"{root}/{MARKER}", b"")
    except StorageError as error:
        fix = f"; to solve it: {error.fix}" if error.fix else ""
        raise StorageError(f"{redact(uri)}: {error.reason}{fix}") from error


def _opened(uri: str, *, is_folder: bool = True, **options: Any) -> tuple[Any, str]:
    """Return the file system of a URI, and the path in it.

    is_folder: whether it names a folder
    options:   of the file system
    """
    import fsspec  # 0.1 s

    scheme, _, rest = uri.partition("://")
    options |= {"skip_instance_cache": True, "use_listings_cache": False}
    if is_folder and (blob := _BLOB.fullmatch(uri)):
        # A container behind https has no folders, but the same container has some.
        scheme, rest = "abfss", f"{blob['container']}@{blob['account']}.dfs.core.windows.net/{blob['path']}"
        options["sas_token"] = blob["token"] or None
    if scheme in ("abfs", "abfss", "az", "wasb", "wasbs"):
        # The scheme that fsspec knows without adlfs, and then says that adlfs is missing.
        scheme, rest = "abfs", rest.replace(".blob.core.windows.net", ".dfs.core.windows.net", 1)
        options["assume_container_exists"] = True  # else it warns of one that it cannot ask for
    elif scheme in ("http", "https"):
        from aiohttp import ClientTimeout  # 0.2 s

        timeout = ClientTimeout(total=None, sock_connect=_CONNECTION_TIMEOUT, sock_read=60)
        options["client_kwargs"] = {"timeout": timeout}
    elif scheme in ("s3", "s3a"):
        options["config_kwargs"] = {"connect_timeout": _CONNECTION_TIMEOUT, "retries": {"max_attempts": 1}}
    return fsspec.core.url_to_fs(f"{scheme}://{rest}", **options)  # type: ignore[no-any-return]


def _listed(system: Any, path: str) -> dict[str, RemoteFile]:
    root = path.rstrip("/")
    files: dict[str, RemoteFile] = {}
    for name, info in sorted(system.find(root, detail=True).items()):
        relative = name.removeprefix(root).lstrip("/")
        if info["type"] != "file" or relative in ("", MARKER) or relative.endswith("/"):
            continue  # some services have an object for a folder
        if os.path.normpath(relative) != relative or relative.startswith(("/", "../")):
            raise StorageError(f"it has an object {relative!r}, which cannot be a file here")
        files[relative] = remote_file(info)
    if not files:
        raise FileNotFoundError(path)
    return files


def remote_file(info: Mapping[str, Any]) -> RemoteFile:
    version = next((str(info[key]) for key in _VERSIONS if info.get(key)), "")
    return RemoteFile(info["name"], info.get("size"), version.strip('"'))


@contextlib.contextmanager
def _explained(uri: str) -> Iterator[None]:
    """Raise StorageError for whatever a library raises about a URI."""
    try:
        yield
    except (StorageError, StoppedError):
        raise
    except Exception as error:
        raise explained(error, uri) from error


def explained(error: Exception, uri: str) -> StorageError:
    """Return the error of a library as one with a reason and a fix."""
    scheme = uri.partition("://")[0]
    extra, login = next(value for schemes, value in _SERVICES.items() if scheme in schemes)
    if isinstance(error, ImportError):
        extra = "azure-storage" if "adlfs" in str(error) else extra  # which reads folders behind https
        return StorageError(f"no package here reads {scheme}://", f'pip install "allranks[{extra}]"')
    causes = [error, error.__cause__ or error.__context__ or error]
    statuses = {getattr(cause, "status", None) or getattr(cause, "status_code", None) for cause in causes}
    text = " ".join(redact(str(causes[-1])).split())[:300] or type(causes[-1]).__name__
    if isinstance(error, PermissionError) or statuses & {401, 403} or _DENIED.search(text):
        return StorageError(f"the credentials were refused or are missing: {text}", login)
    # That there is nothing at a path, not that the service cannot be reached.
    is_absent = causes[-1] is error or isinstance(causes[-1], (KeyError, FileNotFoundError))
    is_absent = is_absent or any(hasattr(causes[-1], name) for name in ("status", "status_code", "response"))
    if isinstance(error, FileNotFoundError) and (statuses & {404, 409, 410} or statuses == {None}) and is_absent:
        return StorageError("the service has no such file or folder", "correct the URI")
    return StorageError(f"{type(causes[-1]).__name__}: {text}", "")
