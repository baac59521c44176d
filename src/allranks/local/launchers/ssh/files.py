"""The files of the instances that mpirun reaches by ssh: the images' configuration of ssh, the user and its home."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from allranks.environments.dockerfile import SETUP_MPI

ORDINARY_USER = 1000
"""The user of ranks whose engine runs as root in a container in which root may not change to other users."""

PASSWD = Path("/etc/passwd")
SHADOW = Path("/etc/shadow")


def write(folder: Path, hosts: Sequence[str], variables: Mapping[str, str]) -> None:
    """Write the files of each instance: `HOST/etc`, whose content takes the place of that of /etc, and `HOST/home`.

    One key lets the user in on all of them. The instance makes its host key itself, when its sshd starts.

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


def login(folder: Path, host: str) -> dict[str, str]:
    """Return the variables that a login to an instance sets, besides the user's name. folder: of `write`"""
    return {"HOME": str(_home(folder, host)), "SHELL": _shell()}


def user() -> tuple[int, int]:
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
    identities = {(os.geteuid(), os.getegid()), user()}
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
