"""Check the Dockerfile of an environment: its base images, and secrets in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from allranks.checks.any_environment.finding import is_template
from allranks.checks.environment import secrets
from allranks.checks.plan.mistakes.latest import IMAGE, is_moving
from allranks.checks.plan.rule import Level, Rule
from allranks.environments.dockerfile import read
from allranks.environments.find import EnvironmentFolder
from allranks.errors import InputError, Problem

DOCKERFILE = Rule(
    "dockerfile",
    Level.ERROR,
    "The Dockerfile has no FROM, or cannot be read.",
    "Docker, Dockerfile reference: a Dockerfile must begin with a FROM instruction",
    "add: FROM IMAGE",
)
SECRET = Rule(
    "image-secret",
    Level.WARNING,
    "A file of the build context has a secret. Everyone who can pull the image can read it.",
    'Docker, "Build secrets": build arguments and environment variables remain in the image',
    "remove it, make a new one, and give it to the build as a secret mount or to the job as a variable",
)


def problems(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the build context of an environment, if it is on this machine."""
    build = document.get("build")
    path = build.get("path") if isinstance(build, dict) else None
    if not isinstance(build, dict) or not isinstance(path, str) or "://" in path or is_template(path):
        return
    folder = file.parent / path
    dockerfile = folder / str(build.get("dockerfile_path") or "Dockerfile")
    if not dockerfile.is_file():
        return
    try:
        parsed = read(dockerfile)
    except InputError as error:
        yield from DOCKERFILE.mark(error.problems)
        return
    stages = {stage.name for stage in parsed.stages}
    for stage in parsed.stages:
        # FROM --platform=linux/amd64 IMAGE AS NAME
        image = next((word for word in stage.image.split() if not word.startswith("--")), "")
        if image not in stages and image != "scratch" and not is_template(image) and is_moving(image):
            yield IMAGE.problem(f"{dockerfile}:{stage.start.line}", f"FROM {image}", "an image that does not change")
    as_folder = EnvironmentFolder(folder.name, folder, parsed, dict(document), {})
    yield from SECRET.mark(secrets.problems(as_folder, folder))
