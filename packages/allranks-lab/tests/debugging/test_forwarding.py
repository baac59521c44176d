"""Only the user of a session reaches its debuggers."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from allranks_lab.debugging.in_rank import LOCAL, Debugger
from allranks_lab.debugging.session import forward

PATIENCE = 60
SAY_AND_READ = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as connection:
    try:
        connection.sendall(b"code")
        print(connection.recv(100).decode())
    except ConnectionError:
        print("refused")
"""


@pytest.fixture
def debugger(tmp_path: Path) -> Iterator[socket.socket]:
    folder = tmp_path / ("long" * 30)  # longer than the path of a socket may be
    folder.mkdir()
    with Debugger(str(folder), 3, ()).listener() as listener:
        listener.settimeout(PATIENCE)
        yield listener


@pytest.fixture
def port(tmp_path: Path, debugger: socket.socket) -> Iterator[int]:
    with socket.create_server((LOCAL, 0)) as listener:
        forward(listener, next(tmp_path.rglob("rank_3.sock")))
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def test_the_socket_of_a_debugger_is_its_users_alone(tmp_path: Path, debugger: socket.socket) -> None:
    assert debugger.family is socket.AF_UNIX
    (path,) = tmp_path.rglob("rank_3.sock")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_port_leads_its_user_to_the_debugger(port: int, debugger: socket.socket) -> None:
    with socket.create_connection((LOCAL, port), timeout=PATIENCE) as client:
        client.sendall(b"code")
        server, _ = debugger.accept()
        with server:
            assert server.recv(100) == b"code"
            server.sendall(b"value")
            assert client.recv(100) == b"value"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_port_leads_no_other_user_there(port: int, debugger: socket.socket) -> None:
    command = [
        "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable,
        "-c",
        SAY_AND_READ,
        str(port),
    ]
    said = subprocess.run(command, user=65534, cwd="/", capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert said.stdout.strip() in ("", "refused")
    debugger.setblocking(False)
    with pytest.raises(BlockingIOError):
        debugger.accept()
