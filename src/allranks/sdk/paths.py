"""Parse and locate paths: local paths become absolute, URIs and names of assets do not change."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from allranks.errors import InputError, Problem, did_you_mean

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")

_DOWNLOADABLE = frozenset(["http", "https", "abfs", "abfss", "az", "wasb", "wasbs", "s3", "s3a", "gs", "gcs", "hf"])

# The SDK drops the prefix "azureml:" from these ids.
_ARM = re.compile(r"/subscriptions/[^/]+/resourceGroups/", re.IGNORECASE)


def is_remote(path: str) -> bool:
    """Return whether the path is a URI or the name of an asset, not a local path."""
    return bool(_SCHEME.match(path)) or path.startswith("azureml:")


def is_downloadable(path: str) -> bool:
    """Return whether the path is a URI of a storage service from which this machine can download."""
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme in _DOWNLOADABLE


def located(path: str, base: Path) -> str:
    """Return the path in the form that plans use. base: the folder that relative paths are relative to."""
    if path.startswith("file://"):
        parts = urlsplit(path)
        return os.path.normpath(unquote(parts.path))
    if is_remote(path):
        return path
    if _ARM.match(path):
        return f"azureml:{path}"
    local = os.path.normpath(base.absolute() / os.path.expanduser(path))
    # The SDK drops "azureml:" from the name of a data asset, and treats paths with a colon or an at sign as such names.
    if not os.path.isabs(path) and (":" in path or "@" in path) and not os.path.exists(local):
        return f"azureml:{path}"
    return local


def shown(path: str | Path) -> str:
    """Return a path for messages, relative if it is below the current folder."""
    try:
        return str(Path(path).absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def require_file(path: Path, expected: str, suffixes: Sequence[str]) -> None:
    """Raise InputError unless there is a regular file in accessible folders, without a loop of links.

    expected: a description of the file, for messages
    suffixes: suffixes of the files that the message for a folder names
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        others = [other.name for other in path.parent.iterdir()] if os.path.isdir(path.parent) else []
        fix = did_you_mean(path.name, others)
        raise InputError(Problem(shown(path), "there is no such file", expected, fix)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(Problem(shown(path), f"cannot be read: {reason}", f"{expected} that you may read")) from None
    if os.path.isdir(path):
        names = sorted(each.name for each in path.iterdir() if each.suffix in suffixes)
        fix = f"name one of its files: {', '.join(names[:10])}" if names else ""
        raise InputError(Problem(shown(path), "it is a folder", expected, fix))
    if not os.path.isfile(path):
        raise InputError(Problem(shown(path), "it is not a regular file", expected))


def project_folder(start: Path, name: str, fix: str) -> Path:
    """Return the nearest folder of that name in `start` or above it. Raise InputError if there is none."""
    if folder := nearest(start, name, exists=Path.is_dir):
        return folder
    found = f"no folder {name!r} in this folder or its parents"
    raise InputError(Problem(str(start), found, f"a project with its {name} in it", fix))


def nearest(start: Path, *names: str, exists: Callable[[Path], bool] = Path.is_file) -> Path | None:
    """Return the path of one of these names in `start` or its nearest parent; None if there is none."""
    start = start.absolute()
    candidates = (folder / name for folder in (start, *start.parents) for name in names)
    return next((path for path in candidates if exists(path)), None)


def cache_folder(name: str) -> Path:
    """Return this user's folder for a cache that all workspaces share, which may not exist. name: of the cache"""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "allranks", name)
