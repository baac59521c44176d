"""Paths of data: local paths become absolute, URIs and names of assets are unchanged."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")

# The SDK drops "azureml:" from these too.
_ARM = re.compile(r"/subscriptions/[^/]+/resourceGroups/", re.IGNORECASE)


def is_remote(path: str) -> bool:
    """Return whether the path is a URI or the name of an asset, which this machine cannot open."""
    return bool(_SCHEME.match(path)) or path.startswith("azureml:")


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
