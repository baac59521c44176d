"""Check the packages of an environment: pinned, and as expect.yaml and the version table have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.contract.requirements import normal
from allranks.errors import Problem
from allranks.images.dockerfile import VERSION, key_of
from allranks.images.find import EXPECTED, EnvironmentFolder
from allranks.images.inside.__main__ import EVERY, PROBES
from allranks.images.packages import requirement_lines
from allranks.plan.requirement_files import files, pins
from allranks.sdk.yaml_lines import at

_UNPINNED = re.compile(r"\bpip\s+(?:install|wheel)\b(?P<arguments>[^&|;]*)")


def pinned(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    yield from _pinned_files(environment)
    yield from _table(environment)
    yield from _commands(environment)
    yield from _images(environment)
    for conda in sorted(environment.folder.glob("conda*.y*ml")):
        fix = "move its packages to requirements.in, then run: " + lock_command(environment.folder)
        yield Problem(f"{conda}:1", "a conda file, which the Dockerfiles do not use", "requirements.txt", fix)


def _pinned_files(environment: EnvironmentFolder) -> Iterator[Problem]:
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
                expected=f"{pin.version}, as in {pin.path.name}:{pin.line}",
                fix=f"correct the one that is wrong; for the file: {lock_command(environment.folder)}",
            )


def _commands(environment: EnvironmentFolder) -> Iterator[Problem]:
    for instruction in environment.dockerfile.instructions():
        for match in _UNPINNED.finditer(instruction.text if instruction.name == "RUN" else ""):
            for line in requirement_lines(match["arguments"].split(), environment.folder):
                word = line.strip("\"'")
                if not word.startswith("-") and "/" not in word and "==" not in word:
                    where = f"{environment.dockerfile.path}:{instruction.line}"
                    yield Problem(where, f"pip installs {word}", f"{word}==VERSION", "add it to requirements.in")


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


WORDS = {"cuda", "cpu", "doca", "distribution"}
"""The words of section names: the devices and the kinds of OFED that an image is built for."""

_NOT_PACKAGES = {"horovod"}
"""Distributions that no file pins: the build compiles them, in the version from the table."""


@dataclass(frozen=True)
class Claim:
    """A version that expect.yaml states, with its subject and its keys."""

    name: str
    version: str
    keys: tuple[str, ...]
    package: bool = False


def expectations(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    path = environment.file(EXPECTED)
    for section, probes in environment.expected.items():
        if section != EVERY and not set(str(section).split()) <= WORDS:
            known = f"{EVERY}, or words of {', '.join(sorted(WORDS))}"
            yield Problem(at(path, section), f"section {section!r}", known, "correct the name")
        for probe in probes or {}:
            if probe not in PROBES:
                yield Problem(at(path, section, probe), f"{probe!r}", ", ".join(PROBES), "name one of those")
    claims = [each for section, probes in environment.expected.items() for each in _claims(section, probes or {})]
    yield from _against_table(environment, claims)
    yield from _against_pins(environment, claims)


def _claims(section: str, probes: dict[str, Any]) -> Iterator[Claim]:
    for probe, value in probes.items():
        if probe == "packages":
            for name, version in value.items():
                yield Claim(normal(name), str(version), (section, probe, name), package=True)
        elif isinstance(value, dict):
            for key in ("version", "cuda", "nccl", "doca", "cuda_version", "nccl_version"):
                if isinstance(value.get(key), str):
                    name = probe if key == "version" else key.removesuffix("_version")
                    yield Claim(name, value[key], (section, probe, key))


def _against_table(environment: EnvironmentFolder, claims: list[Claim]) -> Iterator[Problem]:
    table = {key_of(row.name): row for row in environment.dockerfile.table if row.name.endswith("_VERSION")}
    path = environment.file(EXPECTED)
    for claim in claims:
        row = table.get(claim.name)
        # A CUDA version has two numbers, that of its runtime three.
        if row and claim.version != row.value and not claim.version.startswith(f"{row.value}."):
            where = f"{environment.dockerfile.path.name}:{row.line}"
            yield Problem(
                where=at(path, *claim.keys),
                found=f"{claim.name} {claim.version}",
                expected=f"{row.value}, as in {where}",
                fix=f"write {row.value}, or correct {row.name} in the Dockerfile",
            )
    for row in table.values():
        if row.name != VERSION and key_of(row.name) not in {claim.name for claim in claims}:
            fix = f"add the expectation to {path.name}, or remove the row"
            found = f"{row.name} is not in {path.name}"
            yield Problem(
                f"{environment.dockerfile.path}:{row.line}", found, "a version that is verified in the image", fix
            )


def _against_pins(environment: EnvironmentFolder, claims: list[Claim]) -> Iterator[Problem]:
    pinned = {pin.name: pin for file in files(environment.folder) for pin in pins(file)}
    path = environment.file(EXPECTED)
    for claim in claims:
        if not claim.package or claim.name in _NOT_PACKAGES:
            continue
        pin = pinned.get(claim.name)
        where = at(path, *claim.keys)
        if pin is None:
            fix = f"add it to requirements.in, or remove the expectation; then run: {lock_command(environment.folder)}"
            yield Problem(where, f"package {claim.name}", "one that is installed", fix)
        elif pin.version and pin.version.split("+")[0] != claim.version:
            expected = f"{pin.version}, as in {pin.path.name}:{pin.line}"
            yield Problem(where, f"{claim.name} {claim.version}", expected, f"write {pin.version.split('+')[0]}")
