"""Build an environment's image on this machine, and the command lines of buildah, podman and Docker."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from allranks.errors import InputError, Problem
from allranks.images.dockerfile import Dockerfile, Instruction, Stage, expanded
from allranks.images.find import EnvironmentFolder

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
    found = f"no {name}" if name else f"none of {', '.join(ENGINES)} on this machine"
    fix = f"on Debian or Ubuntu: apt-get install {package}"
    raise InputError(Problem("building and running images", found, f"one of {', '.join(ENGINES)}", fix))


def _daemon() -> bool:
    """Return whether Docker's daemon may be running: the client alone cannot build."""
    return bool(os.environ.get("DOCKER_HOST")) or Path("/var/run/docker.sock").exists()


def build_command(
    engine: Engine, folder: Path, dockerfile: Path, tag: str, arguments: Mapping[str, str], options: Sequence[str]
) -> list[str]:
    """Return the command that builds a folder with a Dockerfile from elsewhere, and tags the image."""
    verb = ["bud", "--isolation", "chroot", "--layers"] if engine.name == "buildah" else ["build"]
    values = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    return [engine.path, *verb, "--file", str(dockerfile), "--tag", tag, *values, *options, str(folder)]


PIP_CACHE = "--mount=type=cache,target=/root/.cache/pip"


ON_CPU = MappingProxyType({"DEVICE": "cpu", "OFED": "distribution"})
"""Rows of the version table for a machine without GPUs."""


def build(
    environment: EnvironmentFolder,
    engine: Engine,
    tag: str,
    base_image: str | None,
    arguments: Mapping[str, str],
    options: Sequence[str] = (),
) -> int:
    """Build the image, and return the engine's exit code. The engine prints to this process's streams.

    base_image: to build from for CPUs, with its rdma-core; None: for GPUs, from the image of the version table
    arguments:  values for rows of the table
    options:    passed to the engine unchanged

    Raise InputError if the table has no row of that name.
    """
    table = environment.dockerfile.values()
    unknown = sorted(arguments.keys() - table.keys())
    if unknown:
        where = f"{environment.dockerfile.path}"
        raise InputError(Problem(where, f"no ARG {', '.join(unknown)}", ", ".join(table), "name one of those"))
    variant = {} if base_image is None else {**ON_CPU, "BASE_IMAGE": base_image}
    values = {name: value for name, value in variant.items() if name in table} | dict(arguments)
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        file = Path(folder, "Dockerfile")
        # Docker has cache mounts only with BuildKit, which is not requested here.
        file.write_text(rendered(environment.dockerfile, values, cache=engine.name != "docker"), encoding="utf-8")
        command = build_command(engine, environment.folder, file, tag, values, options)
        return subprocess.run(command, check=False).returncode


def rendered(dockerfile: Dockerfile, given: Mapping[str, str], cache: bool) -> str:
    """Return the text of the Dockerfile for a variant: its table filled in, without the stages that it does not use.

    Engines differ in which stages they build (buildah before 1.29 does not see that `FROM ofed-${OFED}` needs one;
    Docker without BuildKit builds all) and in whether they support cache mounts, which Azure ML's own build does not
    promise. So registered Dockerfiles rely on neither.

    given: values that replace those of the table
    cache: whether pip caches its downloads in a cache mount
    """
    values = {**dockerfile.values(), **given}
    lines = [f"ARG {name}={value}" for name, value in values.items()]
    for stage in needed(dockerfile, values):
        lines.append(f"\nFROM {expanded(stage.image, values)} AS {stage.name}")
        lines += [_instruction(each, dockerfile, cache) for each in stage.instructions]
    return "\n".join(lines) + "\n"


def needed(dockerfile: Dockerfile, values: Mapping[str, str]) -> tuple[Stage, ...]:
    """Return the last stage and those that it is built from, in the file's order."""
    by_name = {stage.name: stage for stage in dockerfile.stages}
    required = [dockerfile.stages[-1].name]
    for name in required:
        required += [
            source for source in _sources(by_name[name], values) if source in by_name and source not in required
        ]
    return tuple(stage for stage in dockerfile.stages if stage.name in required)


def _sources(stage: Stage, values: Mapping[str, str]) -> list[str]:
    copied = (each.text for each in stage.instructions if each.name == "COPY")
    froms = [word.removeprefix("--from=") for text in copied for word in text.split() if word.startswith("--from=")]
    return [expanded(stage.image, values), *froms]


def _instruction(each: Instruction, dockerfile: Dockerfile, cache: bool) -> str:
    text = "\n".join(dockerfile.lines[each.line - 1 : each.end])
    if not cache or each.name != "RUN" or "--no-cache-dir" not in text:
        return text
    return text.replace("RUN ", f"RUN {PIP_CACHE} ", 1).replace(" --no-cache-dir", "")
