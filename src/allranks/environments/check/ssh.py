"""Where mpirun is to reach other instances, the image has an sshd and a user that can run it, and no key of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import EnvironmentFolder
from allranks.errors import Problem


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    wanted = {name: value for section in environment.expected.values() for name, value in (section or {}).items()}
    if "sshd" not in wanted and "openmpi" not in wanted:
        return
    docker = environment.dockerfile
    user = (wanted.get("sshd") or {}).get("user", "ranks")
    runs = [each for each in docker.instructions() if each.name == "RUN"]
    made = next(
        (each for each in runs if "useradd" in each.text and each.text.split("&&")[0].split()[-1] == user), None
    )
    if not any("openssh-server" in each.text for each in runs):
        yield Problem(
            f"{docker.path}:1", "no openssh-server", "sshd", "add openssh-server to the packages of the system"
        )
    if made is None:
        where = f"{docker.path}:{docker.line_of('useradd')}"
        fix = f"add: RUN useradd --create-home --password '*' {user}"
        yield Problem(where, f"no user {user}", "a user that can run sshd", fix)
    elif "--password '*'" not in made.text:
        where = f"{docker.path}:{made.line}"
        fix = "add --password '*' to useradd"
        yield Problem(where, f"the account of {user} is locked", "one that lets in by key", fix)
    if not any("rm -f /etc/ssh/ssh_host_" in each.text for each in runs):
        where = f"{docker.path}:{docker.line_of('openssh-server')}"
        fix = "add: rm -f /etc/ssh/ssh_host_*"
        yield Problem(where, "host keys stay in the image, equal for all", "no key in the image", fix)
