"""Versions that are derived from content: equal content has one version, and every change creates another.

A version consists of the spec's own version and a digest, such as 1.2.0-3f9a1c2e. The digest covers everything that is
sent to Azure ML: the spec with its ports in order, and the name and bytes of every uploaded file. A component's spec
contains the version of its environment, so a new environment creates a new component.

The digest does not depend on times, modes, the order of files, comments in a spec that is not uploaded itself, or the
location of the project. It depends on line ends, because Linux may fail to start a script with CRLF: a repository that
is checked out on Windows should have `* text=auto eol=lf` in .gitattributes.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DIGEST = "allranks.digest"
"""The property of a registered asset with its whole digest, which is compared if the version exists."""
_DIGITS = 8
"""Digits of the digest in a version."""


def digest(kind: str, spec: Mapping[str, Any], files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of an asset, 64 hexadecimal digits.

    kind:  component or environment
    spec:  the content of its YAML, with its own version
    files: name and digest of each of its files
    """
    # The designer shows ports in their order, so a change of the order is a change.
    canonical = {key: list(spec[key].items()) for key in ("inputs", "outputs") if isinstance(spec.get(key), Mapping)}
    content = {"kind": kind, "spec": {**spec, **canonical}, "files": sorted(files)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def stamped(version: str, digest: str) -> str:
    """Return the version to register."""
    return f"{version}-{digest[:_DIGITS]}" if version else digest[:_DIGITS]


def of_file(path: Path) -> str:
    """Return the digest of a file's bytes."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
    return hasher.hexdigest()
