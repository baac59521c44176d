"""Check that environment.yaml has the labels that follow from the Dockerfile's table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import REGISTERED, EnvironmentFolder
from allranks.environments.labels import VERSION, labels_of
from allranks.errors import Problem
from allranks.sdk.yaml_lines import at


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    path, registered = environment.file(REGISTERED), environment.registered
    labels = labels_of(environment.dockerfile)
    fix = f"run: allranks environments sync {environment.name}"
    if not labels.version:
        where = f"{environment.dockerfile.path}:1"
        yield Problem(where, f"no ARG {VERSION} in the table", f"ARG {VERSION}=1.0.0", "add the line under the first")
    for key, value in (("version", labels.version), ("description", labels.description)):
        if str(registered.get(key, "")) != value:
            yield Problem(at(path, key), f"{key} {registered.get(key)!r}", repr(value), fix)
    tags = registered.get("tags") or {}
    for name in {**labels.tags, **tags}:
        if (tag := tags.get(name)) != (expected := labels.tags.get(name)):
            where = at(path, "tags", name)
            description = f"tag {name}: {tag}" if name in tags else f"no tag {name}"
            yield Problem(where, description, f"{name}: {expected}" if expected else "no such tag", fix)
