"""environment.yaml says what the Dockerfile's table says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import REGISTERED, EnvironmentFolder
from allranks.environments.labels import VERSION, labels_of
from allranks.errors import Problem
from allranks.sdk.yaml_lines import at


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    path, found = environment.file(REGISTERED), environment.registered
    wanted = labels_of(environment.dockerfile)
    fix = f"run: allranks environments sync {environment.name}"
    if not wanted.version:
        where = f"{environment.dockerfile.path}:1"
        yield Problem(where, f"no ARG {VERSION} in the table", f"ARG {VERSION}=1.0.0", "add the line under the first")
    for key, value in (("version", wanted.version), ("description", wanted.description)):
        if str(found.get(key, "")) != value:
            yield Problem(at(path, key), f"{key} {found.get(key)!r}", repr(value), fix)
    tags = found.get("tags") or {}
    for name in {**wanted.tags, **tags}:
        if (was := tags.get(name)) != (right := wanted.tags.get(name)):
            where = at(path, "tags", name)
            said = f"tag {name}: {was}" if name in tags else f"no tag {name}"
            yield Problem(where, said, f"{name}: {right}" if right else "no such tag", fix)
