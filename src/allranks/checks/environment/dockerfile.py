"""Check a Dockerfile: copies of the base, downloads, ssh and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.errors import Problem
from allranks.images import dockerfile as parts
from allranks.images.dockerfile import SETUP_MPI
from allranks.images.find import BASE, DOCKERFILE, EnvironmentFolder
from allranks.secrets import is_secret_name, secrets_in


def base_block_copied(environment: EnvironmentFolder, root: Path) -> Iterator[Problem]:
    yield from _copied_program(environment)
    own = environment.dockerfile
    if environment.name == BASE or not any(line.startswith(("FROM base", parts.BEGIN)) for line in own.lines):
        return
    if parts.block(own.lines) is None:
        fix = f"put the two marker lines before the first FROM, then run: allranks environments sync {environment.name}"
        where = f"{own.path}:{own.line_of('FROM base')}"
        yield Problem(where, "no block of the base", f"{parts.BEGIN} ... {parts.END}", fix)
        return
    base = parts.read(root / BASE / DOCKERFILE)
    if difference := parts.first_difference(own.lines, parts.with_block(own, base).splitlines()):
        line, found, expected = difference
        fix = f"change it there, then run: allranks environments sync {environment.name}"
        yield Problem(f"{own.path}:{line}", found.strip(), f"as in {base.path}: {expected.strip()}", fix)


def _copied_program(environment: EnvironmentFolder) -> Iterator[Problem]:
    if not parts.runs_setup_mpi(environment.dockerfile):
        return
    copy = environment.file(SETUP_MPI.name)
    fix = f"run: allranks environments sync {environment.name}"
    if not copy.exists():
        yield Problem(f"{copy}", "no such file", f"a copy of allranks' {copy.name}, which the Dockerfile runs", fix)
    elif difference := parts.first_difference(*(path.read_text("utf-8").splitlines() for path in (copy, SETUP_MPI))):
        line, found, expected = difference
        yield Problem(f"{copy}:{line}", found.strip(), f"as in allranks: {expected.strip()}", fix)


_COMMIT = re.compile(r"_COMMIT=[0-9a-f]{40}$")


def downloads(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
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
            fix = "write the commit that the branch or tag refers to"
            yield Problem(where, f"{row.name}={row.value}", "a commit's 40 hexadecimal digits", fix)


def _fetches_file(instruction: parts.Instruction) -> bool:
    text = instruction.text
    if instruction.name == "ADD":
        return "://" in text and "--checksum=" not in text
    return instruction.name == "RUN" and bool(re.search(r"\b(curl|wget)\b[^&]*(://|--output|-O)", text))


def ssh(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Check that an image with Open MPI has an sshd, a user that can run it, and no host key of its own. Our
    setup_mpi.sh does all of it."""
    expected = {name: value for section in environment.expected.values() for name, value in (section or {}).items()}
    if "openmpi" not in expected:
        return
    dockerfile = environment.dockerfile
    user = "ranks"
    runs = [each for each in dockerfile.instructions() if each.name == "RUN"]
    account = next(
        (each for each in runs if "useradd" in each.text and each.text.split("&&")[0].split()[-1] == user), None
    )
    if not any("openssh-server" in each.text for each in runs):
        yield Problem(
            f"{dockerfile.path}:1", "no openssh-server", "sshd", "add openssh-server to the packages of the system"
        )
    if parts.runs_setup_mpi(dockerfile):
        if not any(f"{SETUP_MPI.name} " in each.text for each in runs):
            where = f"{dockerfile.path}:{dockerfile.line_of(SETUP_MPI.name)}"
            fix = f'add: RUN /opt/{SETUP_MPI.name} "PATH=$PATH"'
            yield Problem(where, f"{SETUP_MPI.name} is copied, but not run", "ssh that mpirun can use", fix)
        return
    if account is None:
        where = f"{dockerfile.path}:{dockerfile.line_of('useradd')}"
        fix = f"add: RUN useradd --create-home --password '*' {user}"
        yield Problem(where, f"no user {user}", "a user that can run sshd", fix)
    elif "--password '*'" not in account.text:
        where = f"{dockerfile.path}:{account.line}"
        fix = "add --password '*' to useradd"
        yield Problem(where, f"the account of {user} is locked", "an account that accepts a key", fix)
    if not any("rm -f /etc/ssh/ssh_host_" in each.text for each in runs):
        where = f"{dockerfile.path}:{dockerfile.line_of('openssh-server')}"
        fix = "add: rm -f /etc/ssh/ssh_host_*"
        yield Problem(where, "host keys remain in the image, the same for all containers", "an image without keys", fix)


_SETTING = re.compile(r"^\s*(?:ARG|ENV)\s+(?P<settings>\S.*)", re.IGNORECASE)
_PAIR = re.compile(r"(\w+)=[^\s$]")
_OLD_PAIR = re.compile(r"(\w+)\s+[^\s$]")
"""``ENV NAME value``, which Docker still accepts."""
_SEARCHED = (".in", ".sh", ".txt", ".yaml", ".yml")


def secrets(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Yield a problem for each secret in a line, and for each variable of the image that is named like a secret."""
    fix = "remove it, create a new one, and pass it to the build as a secret mount or to the job as a variable"
    for path in sorted(environment.folder.iterdir()):
        if path.name != DOCKERFILE and path.suffix not in _SEARCHED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            names = _secret_names(line) if path.name == DOCKERFILE else []
            kinds = [f"a value for {name}" for name in names] or sorted(set(secrets_in(line).values()))
            for kind in kinds:
                yield Problem(f"{path}:{number}", kind, "an image without secrets", fix)


def _secret_names(line: str) -> list[str]:
    """Return the secret-like names that a line of a Dockerfile sets to a value."""
    setting = _SETTING.match(line)
    if setting is None:
        return []
    first = _OLD_PAIR.match(setting["settings"])
    names = [first[1]] if first else _PAIR.findall(setting["settings"])
    return [name for name in names if is_secret_name(name)]
