"""Versions that follow from content: the same content has one version, and any change makes another.

A stamped version is the spec's own and a digest, such as 1.2.0-3f9a1c2e. What counts is what Azure ML gets: the spec
with its ports in their order, and every file that is uploaded, by its name and its bytes: of the code as the SDK merges
it with its additional includes and as ignore files leave it, or of an environment's build context. A component's spec
names its environment by that one's stamped version, so that a new environment makes a new component.

Times, modes, the order in which a disk lists files, comments around keys of a spec that is not itself uploaded, and the
folder in which a project lies do not count. Line ends do: a script with CRLF is another script, which Linux may not
start. A repository that is checked out on Windows too says `* text=auto eol=lf` in .gitattributes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DIGITS = 8
"""Of the digest, in a version. The whole of it is registered beside it, and compared where a version is there."""

_ORDERED = ("inputs", "outputs")
_CHUNK = 1 << 20


def digest(kind: str, spec: Mapping[str, Any], files: Iterable[tuple[str, str]]) -> str:
    """The digest of an asset, 64 hexadecimal digits.

    kind:  component or environment
    spec:  what its YAML says, with its own version
    files: name and digest of each file that goes with it
    """
    content = {"kind": kind, "spec": _canonical(spec), "files": sorted(files)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def stamped(version: str, digest: str) -> str:
    """The version that is registered: letters, digits, dots, hyphens and underscores."""
    return f"{version}-{digest[:DIGITS]}" if version else digest[:DIGITS]


def of_file(path: Path) -> str:
    """The digest of a file's bytes."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _canonical(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The order of ports is what the designer shows; that of other keys says nothing."""
    return {
        str(key): list(value.items()) if key in _ORDERED and isinstance(value, Mapping) else value
        for key, value in spec.items()
    }
