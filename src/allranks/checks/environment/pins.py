"""Check that packages are pinned, by checksum too if their index provides it, and that the table agrees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import EnvironmentFolder
from allranks.environments.labels import key_of
from allranks.errors import Problem
from allranks.plan.requirement_files import files, pins

_UNPINNED = re.compile(r"\bpip\s+(?:install|wheel)\b(?P<arguments>[^&|;]*)")
_TAKES_VALUE = {
    "-r",
    "--requirement",
    "--wheel-dir",
    "--no-binary",
    "--only-binary",
    "--index-url",
    "--extra-index-url",
}


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    yield from _files(environment)
    yield from _table(environment)
    yield from _commands(environment)
    yield from _images(environment)
    for conda in sorted(environment.folder.glob("conda*.y*ml")):
        fix = "move its packages to requirements.in, then run: " + lock_command(environment.folder)
        yield Problem(f"{conda}:1", "a conda file, which the Dockerfiles do not use", "requirements.txt", fix)


def _files(environment: EnvironmentFolder) -> Iterator[Problem]:
    fix = f"run: {lock_command(environment.folder)}"
    for path in files(environment.folder):
        own_index = any(line.startswith(("--extra-index-url", "--index-url")) for line in path.read_text().splitlines())
        for pin in pins(path):
            where = f"{path}:{pin.line}"
            if pin.version is None or "*" in pin.version:
                yield Problem(where, pin.text, f"{pin.name}==VERSION", fix)
            elif not pin.hashed and not own_index:
                yield Problem(where, f"{pin.text} without a checksum", f"{pin.text} --hash=sha256:...", fix)


def _table(environment: EnvironmentFolder) -> Iterator[Problem]:
    """Yield a problem for each package whose version in the table differs from the files."""
    pinned = {pin.name: pin for path in files(environment.folder) for pin in pins(path) if pin.version}
    for row in environment.dockerfile.table:
        pin = pinned.get(key_of(row.name)) if row.name.endswith("_VERSION") else None
        if pin and pin.version and pin.version.split("+")[0] != row.value:
            yield Problem(
                where=f"{environment.dockerfile.path}:{row.line}",
                found=f"{row.name}={row.value}",
                expected=f"{pin.version}, as {pin.path.name}:{pin.line} has it",
                fix=f"correct the one that is wrong; for the file: {lock_command(environment.folder)}",
            )


def _commands(environment: EnvironmentFolder) -> Iterator[Problem]:
    for instruction in environment.dockerfile.instructions():
        for match in _UNPINNED.finditer(instruction.text if instruction.name == "RUN" else ""):
            for word in _packages(match["arguments"].split()):
                if "==" not in word:
                    where = f"{environment.dockerfile.path}:{instruction.line}"
                    yield Problem(where, f"pip installs {word}", f"{word}==VERSION", "add it to requirements.in")


def _packages(words: list[str]) -> Iterator[str]:
    """Yield the packages that pip is asked for by name, without files, options and their values."""
    values = {index + 1 for index, word in enumerate(words) if word in _TAKES_VALUE}
    for index, word in enumerate(words):
        bare = word.strip("\"'")
        if index not in values and not bare.startswith("-") and "/" not in bare and bare != "\\":
            yield bare


def _images(environment: EnvironmentFolder) -> Iterator[Problem]:
    for row in environment.dockerfile.table:
        if not row.name.endswith("_IMAGE"):
            continue
        _, colon, tag = row.value.rpartition("/")[2].partition(":")
        if (not colon or tag == "latest") and "@sha256:" not in row.value:
            where = f"{environment.dockerfile.path}:{row.line}"
            fix = "name the tag that was tried, for example ubuntu:24.04"
            yield Problem(where, f"{row.name}={row.value}", "an image with a fixed tag or digest", fix)


def lock_command(folder: Path) -> str:
    """Return the command that pins the packages of an environment's requirements.in."""
    if (folder.parent / "lock.sh").exists():
        return f"environments/lock.sh {folder.name}"
    return f"uv pip compile --generate-hashes {folder / 'requirements.in'} --output-file {folder / 'requirements.txt'}"
