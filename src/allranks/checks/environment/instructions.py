"""Check the instructions of a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.environments import base_block
from allranks.environments.dockerfile import Instruction
from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem

_COMMIT = re.compile(r"_COMMIT=[0-9a-f]{40}$")


def of_downloads(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Check that everything that a build downloads is identified by a checksum or a commit."""
    for instruction in environment.dockerfile.instructions():
        where = f"{environment.dockerfile.path}:{instruction.line}"
        if _fetches_file(instruction) and "sha256sum --check" not in instruction.text:
            fix = "add to the same RUN: sha256sum --check, with the sum from the table"
            yield Problem(where, "a download without a checksum", "one that is compared before it is used", fix)
        if re.search(r"\bgit (clone|fetch)\b", instruction.text) and "_COMMIT}" not in instruction.text:
            fix = "name a commit in the table (ARG NAME_COMMIT=...), and fetch that"
            yield Problem(where, "a repository without a commit", "one commit", fix)
    for row in environment.dockerfile.table:
        if row.name.endswith("_COMMIT") and not _COMMIT.search(f"{row.name}={row.value}"):
            where = f"{environment.dockerfile.path}:{row.line}"
            fix = "write the commit that the branch or tag names"
            yield Problem(where, f"{row.name}={row.value}", "a commit's 40 hexadecimal digits", fix)


def _fetches_file(instruction: Instruction) -> bool:
    text = instruction.text
    if instruction.name == "ADD":
        return "://" in text and "--checksum=" not in text
    return instruction.name == "RUN" and bool(re.search(r"\b(curl|wget)\b[^&]*(://|--output|-O)", text))


def of_ssh(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Check that an image with Open MPI or sshd has an sshd, a user that can run it, and no host key of its own. Our
    setup_mpi.sh does all of it."""
    expected = {name: value for section in environment.expected.values() for name, value in (section or {}).items()}
    if "sshd" not in expected and "openmpi" not in expected:
        return
    dockerfile = environment.dockerfile
    user = (expected.get("sshd") or {}).get("user", "ranks")
    runs = [each for each in dockerfile.instructions() if each.name == "RUN"]
    account = next(
        (each for each in runs if "useradd" in each.text and each.text.split("&&")[0].split()[-1] == user), None
    )
    if not any("openssh-server" in each.text for each in runs):
        yield Problem(
            f"{dockerfile.path}:1", "no openssh-server", "sshd", "add openssh-server to the packages of the system"
        )
    if base_block.runs_setup_mpi(dockerfile):
        if not any(f"{base_block.SETUP_MPI.name} / " in each.text for each in runs):
            where = f"{dockerfile.path}:{dockerfile.line_of(base_block.SETUP_MPI.name)}"
            fix = f'add: RUN /opt/{base_block.SETUP_MPI.name} / "PATH=$PATH"'
            yield Problem(where, f"{base_block.SETUP_MPI.name} is copied, but not run", "ssh that mpirun can use", fix)
        return
    if account is None:
        where = f"{dockerfile.path}:{dockerfile.line_of('useradd')}"
        fix = f"add: RUN useradd --create-home --password '*' {user}"
        yield Problem(where, f"no user {user}", "a user that can run sshd", fix)
    elif "--password '*'" not in account.text:
        where = f"{dockerfile.path}:{account.line}"
        fix = "add --password '*' to useradd"
        yield Problem(where, f"the account of {user} is locked", "one that lets in by key", fix)
    if not any("rm -f /etc/ssh/ssh_host_" in each.text for each in runs):
        where = f"{dockerfile.path}:{dockerfile.line_of('openssh-server')}"
        fix = "add: rm -f /etc/ssh/ssh_host_*"
        yield Problem(where, "host keys stay in the image, equal for all", "no key in the image", fix)
