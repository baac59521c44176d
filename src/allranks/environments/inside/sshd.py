"""Check that a user can start an sshd and log in by key, as mpirun does to reach an instance.

Run it as a program by that user: python -m inside.sshd.
"""

from __future__ import annotations

import getpass
import os
import pwd
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .asking import last_line, output, place
from .report import Finding

PROGRAM = "/usr/sbin/sshd"
SECONDS = 60


def sshd(wanted: dict[str, Any], _facts: dict[str, str]) -> list[Finding]:
    user = str(wanted["user"])
    what = f"sshd of {user}"
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return [Finding(what, "lets in by key", f"no user {user}", False)]
    if os.geteuid() not in (0, account.pw_uid):
        return [Finding(what, "lets in by key", f"not tried: {getpass.getuser()} cannot become {user}", None)]
    import_folder = place()
    program = ["env", f"PYTHONPATH={import_folder}", sys.executable, "-m", f"{__package__}.sshd"]
    become = ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []
    code, text = output(*become, *program, seconds=4 * SECONDS)
    return [Finding(what, "lets in by key", "lets in by key" if code == 0 else last_line(text), code == 0)]


def main() -> str:
    """Start sshd on a free port of the loopback interface, and log in. Return the error, or ""."""
    with tempfile.TemporaryDirectory(prefix="sshd-") as name:
        folder = Path(name)
        for key in ("host", "own"):
            code, text = output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
            if code != 0:
                return last_line(text)
        port = _free_port()
        options = ["-o", f"Port={port}", "-o", "ListenAddress=127.0.0.1", "-o", f"HostKey={folder}/host"]
        options += ["-o", f"AuthorizedKeysFile={folder}/own.pub", "-o", "StrictModes=no", "-o", "UsePAM=no"]
        options += ["-o", "PidFile=none", "-o", "PasswordAuthentication=no"]
        with open(folder / "log", "w+", encoding="utf-8") as log:
            server = subprocess.Popen([PROGRAM, "-D", "-e", "-f", "/dev/null", *options], stderr=log)
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
    options = ["-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"]
    target = f"{getpass.getuser()}@127.0.0.1"
    code, text = output(
        "ssh", "-F", "none", "-i", str(key), "-p", str(port), *options, target, "echo let in", seconds=SECONDS
    )
    return "" if code == 0 and "let in" in text else last_line(text)


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
