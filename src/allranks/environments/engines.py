"""What builds and runs images on this machine: buildah, podman or Docker. Only the command lines; others start them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

ENGINES = ("buildah", "podman", "docker")
"""By preference: buildah needs neither a daemon nor a runtime."""

PACKAGES = {"buildah": "buildah", "podman": "podman", "docker": "docker.io"}
"""The packages of Debian and Ubuntu that bring them."""


@dataclass(frozen=True)
class Engine:
    """name: one of ENGINES; path: the program."""

    name: str
    path: str


def engine(name: str | None = None) -> Engine:
    """Return the engine of that name, or the first one that is here. Raise InputError if there is none."""
    for candidate in (name,) if name else ENGINES:
        path = shutil.which(candidate)
        if path and (candidate != "docker" or name or _daemon()):
            return Engine(candidate, path)
    package = PACKAGES.get(name or "buildah", name)
    raise InputError(
        Problem(
            where="building and running images",
            found=f"no {name}" if name else f"none of {', '.join(ENGINES)} on this machine",
            expected="one of them",
            fix=f"on Debian or Ubuntu: apt-get install {package}",
        )
    )


def _daemon() -> bool:
    """Return whether Docker's daemon may be there: the program alone builds nothing."""
    return bool(os.environ.get("DOCKER_HOST")) or Path("/var/run/docker.sock").exists()


def has_cache_mounts(engine: Engine) -> bool:
    """Docker has them only with BuildKit, which is not asked for here."""
    return engine.name != "docker"


def build_command(
    engine: Engine, folder: Path, dockerfile: Path, tag: str, arguments: Mapping[str, str], options: Sequence[str]
) -> list[str]:
    """Return the command that builds a folder by a Dockerfile elsewhere, and calls the image `tag`."""
    verb = ["bud", "--isolation", "chroot", "--layers"] if engine.name == "buildah" else ["build"]
    values = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    return [engine.path, *verb, "--file", str(dockerfile), "--tag", tag, *values, *options, str(folder)]


def start_container(engine: Engine, image: str) -> list[str] | None:
    """For buildah, the command that makes a container and prints its name; the others make it as they run it."""
    return [engine.path, "from", "--pull-never", image] if engine.name == "buildah" else None


def run_command(
    engine: Engine, image: str, container: str, mounts: Mapping[Path, str], command: Sequence[str]
) -> list[str]:
    """Return the command that runs another one inside an image, with folders of this machine to read at places in
    it."""
    volumes = [f"--volume={folder}:{place}:ro" for folder, place in mounts.items()]
    if engine.name == "buildah":
        return [engine.path, "run", "--isolation", "chroot", *volumes, container, "--", *command]
    return [engine.path, "run", "--rm", "--pull=never", "--entrypoint=", *volumes, image, *command]


def remove_command(engine: Engine, container: str) -> list[str] | None:
    return [engine.path, "rm", container] if engine.name == "buildah" else None
