"""azure-ai-ml loads environment.yaml as it stands, and means by it what the folder is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import DOCKERFILE, REGISTERED, EnvironmentFolder
from allranks.errors import Problem
from allranks.sdk.specs import quiet
from allranks.sdk.yaml_lines import at


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    path = environment.file(REGISTERED)
    name = environment.registered.get("name")
    wanted = f"allranks-{environment.name}"
    if name != wanted:
        yield Problem(at(path, "name"), f"name {name!r}", repr(wanted), f"write: name: {wanted}")
    build = environment.registered.get("build")
    file = build.get("dockerfile_path", DOCKERFILE) if isinstance(build, dict) else None
    if not isinstance(build, dict) or build.get("path") != "." or file != DOCKERFILE:
        yield Problem(at(path, "build"), f"build {build}", "the folder itself", "write: build: {path: .}")
    yield from _refused(path)


def _refused(path: Path) -> Iterator[Problem]:
    from azure.ai.ml import load_environment

    try:
        with quiet():
            load_environment(path)
    # Whatever the SDK raises means that it would not register this; there is no common class.
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        key = re.search(r'"(\w+)": \[', said)
        where = at(path, key[1]) if key else at(path)
        yield Problem(where, f"azure-ai-ml does not load it: {said}", "what its schema takes", "correct the file")
