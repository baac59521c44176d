"""Build an environment's image on this machine with buildah, podman or Docker, and verify it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk.uploads import DOCKERFILE, context_of, dockerfile_text

ENGINES = {"buildah": "buildah", "podman": "podman", "docker": "docker.io"}
"""The programs, in order of preference, and their packages on Debian and Ubuntu. buildah needs neither a daemon nor a
runtime."""

ON_CPU = {"DEVICE": "cpu", "OFED": "distribution"}
"""Arguments of this project's Dockerfiles for a machine without GPUs."""

_ARGUMENT = re.compile(r"""^ARG (\w+)=["']?([^"'\s]*)""", re.MULTILINE)
_FROM = re.compile(r"^FROM .*$", re.MULTILINE)


def engine(name: str | None = None) -> Path:
    """Return the executable of an engine, by default of the first one that is installed. Raise InputError if there is
    none. name: one of ENGINES"""
    # Docker's client cannot build without a daemon.
    has_daemon = bool(os.environ.get("DOCKER_HOST")) or Path("/var/run/docker.sock").exists()
    for candidate in (name,) if name else ENGINES:
        path = shutil.which(candidate)
        if path and (candidate != "docker" or name or has_daemon):
            return Path(path)
    found = f"no {name}" if name else f"none of {', '.join(ENGINES)} on this machine"
    fix = f"on Debian or Ubuntu: apt-get install {ENGINES.get(name or '', 'buildah')}"
    raise InputError(Problem("building and running images", found, f"one of {', '.join(ENGINES)}", fix))


def build_command(engine: Path, folder: Path, dockerfile: str, tag: str, options: Sequence[str]) -> list[str]:
    """Return the command that builds a folder and tags the image. dockerfile: its path in the folder"""
    verbs = {
        "buildah": [str(engine), "bud", "--isolation", "chroot", "--layers"],
        # Without BuildKit, Docker also builds stages that the last one does not need.
        "docker": ["env", "DOCKER_BUILDKIT=1", str(engine), "build"],
    }
    verb = verbs.get(engine.name, [str(engine), "build"])
    return [*verb, "--file", str(folder / dockerfile), "--tag", tag, *options, str(folder)]


def build(
    folder: Path, engine: Path, tag: str, base_image: str | None, given: Mapping[str, str], options: Sequence[str]
) -> int:
    """Build the image of an environment's folder. The engine prints to this process's streams. Return its exit code.

    base_image: to build from for CPUs, with its rdma-core; None: for GPUs, from the image that the Dockerfile names
    given:      values of the Dockerfile's arguments
    options:    passed to the engine unchanged

    Raise InputError if the Dockerfile has no argument of that name.
    """
    known = arguments_of(dockerfile_text(folder / DOCKERFILE))
    if unknown := sorted(given.keys() - known.keys()):
        found = f"no ARG {', '.join(unknown)}"
        raise InputError(Problem(str(folder / DOCKERFILE), found, ", ".join(known), "name one of those"))
    variant = {} if base_image is None else {**ON_CPU, "BASE_IMAGE": base_image}
    with tempfile.TemporaryDirectory(prefix="allranks-") as temporary:
        own = copy_context(folder, Path(temporary), DOCKERFILE, {**variant, **given})
        command = build_command(engine, Path(temporary), DOCKERFILE, tag, [*own, *options])
        return subprocess.run(command, check=False).returncode


def copy_context(folder: Path, into: Path, dockerfile: str, given: Mapping[str, str]) -> list[str]:
    """Copy a build context as it is uploaded, for a build with these arguments. Return the options that pass them,
    without those that the Dockerfile does not have.

    In FROM they are replaced by their values: buildah before 1.29 does not build a stage that only ``FROM x-${ARG}``
    needs. Raise InputError if a file cannot be read.
    """
    for name, path in context_of(folder).files.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, into / name)
    text = dockerfile_text(folder / dockerfile)
    values = arguments_of(text)
    values |= {name: value for name, value in given.items() if name in values}
    text = _FROM.sub(lambda match: Template(match[0]).safe_substitute(values), text)
    (into / dockerfile).write_text(text, encoding="utf-8")
    return [f"--build-arg={name}={values[name]}" for name in given if name in values]


def arguments_of(text: str) -> dict[str, str]:
    """Return the arguments before the first stage of a Dockerfile, with their values."""
    first = _FROM.search(text)
    return dict(_ARGUMENT.findall(text[: first.start() if first else None]))


SECONDS = 900
"""Time limit of the program, which runs about twenty probes. A few of them import a framework."""

_CODE, _EXPECTATIONS = "/verify/code", "/verify/wanted"


def verify(image: str, wanted: dict[str, Any], engine: Path, code: Path, options: Sequence[str]) -> int:
    """Run the program of the component verify_environment in an image and print its output. Return its exit code: 1 if
    a check fails.

    wanted:  what the image must contain
    code:    the component's folder
    options: of the program

    Raise InputError if the program cannot run in the image.
    """
    with tempfile.TemporaryDirectory(prefix="allranks-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user in the image must be able to read it
        (folder / "expectations.json").write_text(json.dumps(wanted), encoding="utf-8")
        volumes = [f"--volume={code}:{_CODE}:ro", f"--volume={folder}:{_EXPECTATIONS}:ro"]
        program = ["python3", f"{_CODE}/verify.py", f"{_EXPECTATIONS}/expectations.json", *options]
        if engine.name != "buildah":
            run = [str(engine), "run", "--rm", "--pull=never", "--entrypoint=", *volumes, image, *program]
            completed = _output(run)
        elif (completed := _output([str(engine), "from", "--pull-never", image])).returncode == 0:
            container = completed.stdout.strip()
            completed = _output([str(engine), "run", "--isolation", "chroot", *volumes, container, "--", *program])
            _output([str(engine), "rm", container])
    if completed.returncode in (0, 1) and completed.stdout:
        sys.stdout.write(completed.stdout)
        return completed.returncode
    lines = [line for line in (completed.stderr or completed.stdout).splitlines() if line.strip()]
    found = f"exit code {completed.returncode}: " + (" ".join(lines[-3:]) or "no output")
    fix = "build it: allranks environments build NAME --tag IMAGE"
    raise InputError(Problem(f"image {image}", found, "an image on this machine with python3 in it", fix))


def _output(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
