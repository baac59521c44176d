"""Versions that are derived from content: equal content has one version, and every change creates another.

A version consists of the spec's own version and a digest, such as 1.2.0-3f9a1c2e. The digest covers what is sent to
Azure ML: the spec with its ports in order, and the name and bytes of every uploaded file: the code as the SDK merges it
with additional includes and filters it by ignore files, or an environment's build context. A component's spec contains
the version of its environment, so a new environment creates a new component.

The digest does not depend on times, modes, the order of files on disk, comments around keys of a spec that is not
itself uploaded, or the location of the project. It does depend on line ends: Linux may fail to start a script with
CRLF. A repository that is also checked out on Windows should have `* text=auto eol=lf` in .gitattributes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DIGITS = 8
"""Digits of the digest in a version. The whole digest is registered too, and compared if the version exists."""

_ORDERED = ("inputs", "outputs")
_CHUNK = 1 << 20


def digest(kind: str, spec: Mapping[str, Any], files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of an asset, 64 hexadecimal digits.

    kind:  component or environment
    spec:  the content of its YAML, with its own version
    files: name and digest of each of its files
    """
    content = {"kind": kind, "spec": _canonical(spec), "files": sorted(files)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def stamped(version: str, digest: str) -> str:
    """Return the version to register: letters, digits, dots, hyphens and underscores."""
    return f"{version}-{digest[:DIGITS]}" if version else digest[:DIGITS]


def of_file(path: Path) -> str:
    """Return the digest of a file's bytes."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def _canonical(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Sort keys, except those of ports, whose order the designer displays."""
    return {
        str(key): list(value.items()) if key in _ORDERED and isinstance(value, Mapping) else value
        for key, value in spec.items()
    }
