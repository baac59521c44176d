"""Check environment.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.checks.environment.files import refused
from allranks.environments.dockerfile import VERSION, labels_of
from allranks.environments.find import DOCKERFILE, REGISTERED, EnvironmentFolder
from allranks.errors import Problem
from allranks.sdk.yaml_lines import at


def of_name(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Check that azure-ai-ml loads environment.yaml, and that its name and build context are the folder\'s."""
    path = environment.file(REGISTERED)
    name = environment.registered.get("name")
    # A prefix keeps the environments of several projects apart in a workspace.
    if name != environment.name and not str(name).endswith(f"-{environment.name}"):
        expected = f"{environment.name!r}, the folder's name, with any prefix: 'PROJECT-{environment.name}'"
        yield Problem(at(path, "name"), f"name {name!r}", expected, f"write: name: {environment.name}")
    build = environment.registered.get("build")
    file = build.get("dockerfile_path", DOCKERFILE) if isinstance(build, dict) else None
    if not isinstance(build, dict) or build.get("path") != "." or file != DOCKERFILE:
        yield Problem(at(path, "build"), f"build {build}", "the folder itself", "write: build: {path: .}")
    yield from refused(path, environment.registered)


def of_labels(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Check that environment.yaml has the labels that follow from the Dockerfile\'s table."""
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
