"""The command lines that build and run images with buildah, podman or Docker. The callers run them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

ENGINES = ("buildah", "podman", "docker")
"""In order of preference: buildah needs neither a daemon nor a runtime."""

PACKAGES = {"buildah": "buildah", "podman": "podman", "docker": "docker.io"}
"""The package of each engine on Debian and Ubuntu."""


@dataclass(frozen=True)
class Engine:
    """A program that builds images. name: one of ENGINES; path: the executable."""

    name: str
    path: str


def engine(name: str | None = None) -> Engine:
    """Return the engine of that name, or the first one installed. Raise InputError if there is none."""
    for candidate in (name,) if name else ENGINES:
        path = shutil.which(candidate)
        if path and (candidate != "docker" or name or _daemon()):
            return Engine(candidate, path)
    package = PACKAGES.get(name or "", PACKAGES["buildah"])
    raise InputError(
        Problem(
            where="building and running images",
            found=f"no {name}" if name else f"none of {', '.join(ENGINES)} on this machine",
            expected=f"one of {', '.join(ENGINES)}",
            fix=f"on Debian or Ubuntu: apt-get install {package}",
        )
    )


def _daemon() -> bool:
    """Return whether Docker's daemon may be running: the client alone cannot build."""
    return bool(os.environ.get("DOCKER_HOST")) or Path("/var/run/docker.sock").exists()


def has_cache_mounts(engine: Engine) -> bool:
    """Return whether the engine supports cache mounts. Docker does only with BuildKit, which is not requested here."""
    return engine.name != "docker"


def build_command(
    engine: Engine, folder: Path, dockerfile: Path, tag: str, arguments: Mapping[str, str], options: Sequence[str]
) -> list[str]:
    """Return the command that builds a folder with a Dockerfile from elsewhere, and tags the image."""
    verb = ["bud", "--isolation", "chroot", "--layers"] if engine.name == "buildah" else ["build"]
    values = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    return [engine.path, *verb, "--file", str(dockerfile), "--tag", tag, *values, *options, str(folder)]


def start_container(engine: Engine, image: str) -> list[str] | None:
    """Return buildah's command that creates a container and prints its name; None for engines that create it on run."""
    return [engine.path, "from", "--pull-never", image] if engine.name == "buildah" else None


def run_command(
    engine: Engine, image: str, container: str, mounts: Mapping[Path, str], command: Sequence[str]
) -> list[str]:
    """Return the command that runs another one inside an image.

    mounts: folders of this machine, and their paths in the image, where they are read-only
    """
    volumes = [f"--volume={folder}:{place}:ro" for folder, place in mounts.items()]
    if engine.name == "buildah":
        return [engine.path, "run", "--isolation", "chroot", *volumes, container, "--", *command]
    return [engine.path, "run", "--rm", "--pull=never", "--entrypoint=", *volumes, image, *command]


def remove_command(engine: Engine, container: str) -> list[str] | None:
    return [engine.path, "rm", container] if engine.name == "buildah" else None
