"""Check that expect.yaml and the Dockerfile's table have the same versions, and neither has more than the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.checks.environment.pins import lock_command
from allranks.contract.requirements import normal
from allranks.environments.find import EXPECTED, EnvironmentFolder
from allranks.environments.inside.__main__ import EVERY, PROBES
from allranks.environments.labels import VERSION, key_of
from allranks.errors import Problem
from allranks.plan.requirement_files import files, pins
from allranks.sdk.yaml_lines import at

WORDS = {"cuda", "cpu", "doca", "distribution"}
"""The words of section names: the devices and the kinds of OFED that an image is built for."""

_NOT_PACKAGES = {"horovod"}
"""Distributions that no file pins: the build compiles them, in the version from the table."""


@dataclass(frozen=True)
class Claim:
    """A version in expect.yaml: of what, and the keys that lead to it."""

    name: str
    version: str
    keys: tuple[str, ...]
    package: bool = False


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
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
                expected=f"{row.value}, as {where} has it",
                fix=f"write {row.value}, or correct {row.name} in the Dockerfile",
            )
    for row in table.values():
        if row.name != VERSION and key_of(row.name) not in {claim.name for claim in claims}:
            fix = f"add the expectation to {path.name}, or remove the row"
            found = f"{row.name} is not in {path.name}"
            yield Problem(f"{environment.dockerfile.path}:{row.line}", found, "a version that is proved inside", fix)


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
            expected = f"{pin.version}, as {pin.path.name}:{pin.line} has it"
            yield Problem(where, f"{claim.name} {claim.version}", expected, f"write {pin.version.split('+')[0]}")
