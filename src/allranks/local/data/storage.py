"""Access storage services through fsspec with the user's own credentials: list, read and write remote files.

The credentials are those that the service's library finds: environment variables, files of the command lines, managed
identities, a signature in the URI.
"""

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

# Its errors contain what it logs about a missing login. The user's own handlers still get the log.
logging.getLogger("azure").addHandler(logging.NullHandler())

MARKER = "_SUCCESS"
"""The empty object that is written last into an uploaded folder, as by Spark: a folder without it is incomplete."""

_AZURE = "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and log in: az login"
_AWS = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_SERVICES = {
    ("http", "https"): ("http", "use a URL that needs no credentials, such as one with a SAS token"),
    ("abfs", "abfss", "az", "wasb", "wasbs"): ("azure-storage", _AZURE),
    ("s3", "s3a"): ("s3", _AWS),
    ("gs", "gcs"): ("gs", "log in: gcloud auth application-default login"),
    ("hf",): ("hf", "log in: hf auth login"),
}
"""By URI scheme: the extra of allranks that installs the library, and the credentials that the library needs."""

_VERSIONS = ("ETag", "etag", "md5Hash", "blob_id", "Last-Modified", "LastModified", "last_modified", "updated", "mtime")
"""Fields of a library's file information that change with the content, in order of preference."""

_BLOB = re.compile(
    r"https://(?P<account>[^/.]+)\.blob\.core\.windows\.net/(?P<container>[^/?]+)/?(?P<path>[^?]*)\??(?P<token>.*)"
)

_CONNECTION_TIMEOUT = 5
"""Seconds to connect to a service."""

_DENIED = re.compile(r"\b(?:forbidden|unauthorized|access ?denied|authentication\w*|credentials?)\b", re.IGNORECASE)


class StorageError(OSError):
    """A service cannot be used, or the requested data do not exist.

    reason: the cause, without secrets
    fix:    advice for the user; "" if unknown
    """

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix


@dataclass(frozen=True)
class RemoteFile:
    """A file of a service.

    path:    as the service's library names it
    size:    in bytes; None if the service does not report it
    version: changes with the content; "" if the service does not report it
    """

    path: str
    size: int | None = None
    version: str = ""


@dataclass(frozen=True)
class Remote:
    """A remote file or folder.

    is_file: whether it is one file, which is then the only one of `files`
    files:   the files by path relative to the folder, sorted
    """

    system: Any
    is_file: bool
    files: Mapping[str, RemoteFile] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The total bytes of the files of known size."""
        return sum(file.size or 0 for file in self.files.values())

    def digest(self) -> str:
        """Return a digest of the names and versions of the files."""
        rows = [[name, file.size, file.version] for name, file in self.files.items()]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def find(uri: str, kind: str) -> Remote:
    """Find the remote file or folder of a URI. kind: the type of the port. Raise StorageError on failure."""
    try:
        with _converted_errors(uri):
            return _find(uri, kind)
    except StorageError as error:
        if "DefaultAzureCredential" not in error.reason:
            raise
        login = error
    try:  # without a login, the container may be public
        with _converted_errors(uri):
            return _find(uri, kind, anon=True)
    except StorageError as error:
        raise (login if error.fix else error) from None


def _find(uri: str, kind: str, **options: Any) -> Remote:
    system, path = _open(uri, is_folder=kind != "uri_file", **options)
    if hasattr(system, "service_client"):  # adlfs has no options for these: by default, it retries for minutes if an
        config = system.service_client._config  # account cannot be reached or a login is missing
        config.transport.connection_config.timeout = _CONNECTION_TIMEOUT
        config.retry_policy.connect_retries = 1
        config.retry_policy.initial_backoff, config.retry_policy.increment_base = 0.5, 0
        config.retry_policy.random_jitter_range = 0
    info = system.info(path) if kind == "uri_file" or not system.isdir(path) else None
    if info is None or info["type"] == "directory":
        return Remote(system, False, _list(system, path))
    name = PurePosixPath(path.partition("?")[0]).name or "data"
    return Remote(system, True, {name: remote_file(info)})


def upload(source: Path, uri: str, stop: Stop | None = None) -> None:
    """Upload a file or folder. An object appears only when it is complete. A complete folder contains `MARKER`.

    Raise StorageError, OSError, or StoppedError once `stop` is set.
    """
    try:
        with _converted_errors(uri):
            system, path = _open(uri)
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


def _open(uri: str, *, is_folder: bool = True, **options: Any) -> tuple[Any, str]:
    """Return the file system of a URI, and the path in it.

    is_folder: whether the URI names a folder
    options:   options of the file system
    """
    import fsspec  # 0.1 s

    scheme, _, rest = uri.partition("://")
    options |= {"skip_instance_cache": True, "use_listings_cache": False}
    if is_folder and (blob := _BLOB.fullmatch(uri)):
        # https cannot list the folders of a container; Azure's own scheme can.
        scheme, rest = "abfss", f"{blob['container']}@{blob['account']}.dfs.core.windows.net/{blob['path']}"
        options["sas_token"] = blob["token"] or None
    if scheme in ("abfs", "abfss", "az", "wasb", "wasbs"):
        # fsspec knows this scheme without adlfs, and reports that adlfs is missing.
        scheme, rest = "abfs", rest.replace(".blob.core.windows.net", ".dfs.core.windows.net", 1)
        options["assume_container_exists"] = True  # else it warns if it may not query the container
    elif scheme in ("http", "https"):
        from aiohttp import ClientTimeout  # 0.2 s

        timeout = ClientTimeout(total=None, sock_connect=_CONNECTION_TIMEOUT, sock_read=60)
        options["client_kwargs"] = {"timeout": timeout}
    elif scheme in ("s3", "s3a"):
        options["config_kwargs"] = {"connect_timeout": _CONNECTION_TIMEOUT, "retries": {"max_attempts": 1}}
    return fsspec.core.url_to_fs(f"{scheme}://{rest}", **options)  # type: ignore[no-any-return]


def _list(system: Any, path: str) -> dict[str, RemoteFile]:
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
def _converted_errors(uri: str) -> Iterator[None]:
    """Raise StorageError for every exception of a library about a URI."""
    try:
        yield
    except (StorageError, StoppedError):
        raise
    except Exception as error:
        raise storage_error(error, uri) from error


def storage_error(error: Exception, uri: str) -> StorageError:
    """Convert a library's exception to a StorageError with a reason and a fix."""
    scheme = uri.partition("://")[0]
    extra, login = next(value for schemes, value in _SERVICES.items() if scheme in schemes)
    if isinstance(error, ImportError):
        extra = "azure-storage" if "adlfs" in str(error) else extra  # which reads folders behind https
        return StorageError(f"no installed package reads {scheme}://", f'pip install "allranks[{extra}]"')
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
