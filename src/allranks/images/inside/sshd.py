"""Check that a user, and root, can start an sshd with the image's configuration and log in by key, and that what runs
there finds the same programs as here: mpirun starts its daemon on another instance in this way.

Run it as a program by that user: python -m inside.sshd.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .probe_commands import Finding, last_line, output, place

PROGRAM = "/usr/sbin/sshd"
PROGRAMS = ("mpirun", "orted", "python")
"""The programs that a session must find where this process finds them."""

SECONDS = 60


def sshd(wanted: dict[str, Any], _facts: dict[str, str]) -> list[Finding]:
    """Check it for `user`, and for root if this process is root."""
    user = str(wanted["user"])
    return [_by(name) for name in (["root", user] if os.geteuid() == 0 else [user])]


def _by(user: str) -> Finding:
    what, expected = f"sshd of {user}", "accepts a key, with the same PATH"
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return Finding(what, expected, f"no user {user}", False)
    if os.geteuid() not in (0, account.pw_uid):
        return Finding(what, expected, f"not tried: {getpass.getuser()} cannot become {user}", None)
    import_folder = place()
    program = ["env", f"PYTHONPATH={import_folder}", sys.executable, "-m", f"{__package__}.sshd"]
    become = ["runuser", "-u", user, "--"] if os.geteuid() != account.pw_uid else []
    code, text = output(*become, *program, seconds=4 * SECONDS)
    return Finding(what, expected, expected if code == 0 else last_line(text), code == 0)


def main() -> str:
    """Start sshd on a free port of the loopback interface, and log in. Return the error, or ""."""
    with tempfile.TemporaryDirectory(prefix="sshd-") as name:
        folder = Path(name)
        code, text = output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "own"))
        if code != 0:
            return last_line(text)
        port = _free_port()
        options = ["-o", f"Port={port}", "-o", "ListenAddress=127.0.0.1", "-o", f"AuthorizedKeysFile={folder}/own.pub"]
        with open(folder / "log", "w+", encoding="utf-8") as log:
            server = subprocess.Popen([PROGRAM, "-D", "-e", *options], stderr=log)
            try:
                return _log_in(server, port, folder / "own") or ""
            finally:
                server.terminate()
                server.wait()
                log.seek(0)
                sys.stderr.write(log.read())


def _log_in(server: subprocess.Popen[bytes], port: int, key: Path) -> str:
    deadline = time.monotonic() + SECONDS
    while not _answers(port):
        if server.poll() is not None:
            return f"sshd ended with {server.returncode}"
        if time.monotonic() > deadline:
            return f"sshd did not answer in {SECONDS} s"
        time.sleep(0.05)
    target = f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1"
    login = ("ssh", "-o", "BatchMode=yes", "-i", str(key), "-p", str(port), target)
    code, there = output(*login, f"command -v {' '.join(PROGRAMS)}", seconds=SECONDS)
    here = [path for path in map(shutil.which, PROGRAMS) if path]
    return "" if there.split() == here else f"exit code {code}: found {there.strip()}, expected {' '.join(here)}"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    error = main()
    print(error)
    sys.exit(bool(error))
