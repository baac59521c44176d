"""What a process on an instance of the rack reaches: what this machine reaches, but nothing that it serves itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from allranks.local.engine import run
from allranks.local.instances import network_out
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.runs.workspace import Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(network_out.program("pasta") is None, reason="there is no pasta (package passt)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network beside this machine's"),
]

SERVER = """
import socket
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()
"""
REACHES = """
import json, socket, sys
def reaches(address, port):
    try:
        socket.create_connection((address, port), 2).close()
    except OSError:
        return False
    return True
print(json.dumps([reaches(*pair) for pair in json.loads(sys.argv[1])]))
"""


@contextmanager
def serving(*command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server, and yield its process and its port."""
    with subprocess.Popen([*command, sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def machine_beside() -> Iterator[tuple[str, str, int]]:
    """Yield this machine's address in a network with another machine, and the address and port of a server there."""
    with serving("unshare", "--net") as (process, port):
        name, ours, theirs = f"test{process.pid}"[:15], "198.51.100.1", "198.51.100.2"
        inside = ["nsenter", "--target", str(process.pid), "--net"]
        subprocess.run(
            ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)], check=True
        )
        try:
            for prefix, link, address in (([], name, ours), (inside, "eth0", theirs)):
                subprocess.run([*prefix, "ip", "addr", "add", f"{address}/24", "dev", link], check=True)
                subprocess.run([*prefix, "ip", "link", "set", link, "up"], check=True)
            yield ours, theirs, port
        finally:
            subprocess.run(["ip", "link", "del", name], check=True)


def reached(folder: Path, pairs: list[tuple[str, int]], *, offline: bool) -> list[list[bool]]:
    """Return which servers each of two instances reaches."""
    command = f"{sys.executable} -c '{REACHES}' '{json.dumps(pairs)}'"
    plan = Plan("p", Graph((Step("reach", command, instance_count=2, deterministic=False),)))
    record = run(plan, Workspace(folder), Options("rack", track=False, offline=offline))
    return [json.loads(Path(rank.log).read_text("utf-8")) for rank in record.steps[0].ranks]


def test_what_an_instance_reaches(tmp_path: Path) -> None:
    if network_out.usable() is None:
        pytest.skip("this machine has no default route, or no /dev/net/tun")
    with machine_beside() as (ours, theirs, port), serving() as (_, own_port):
        assert socket.create_connection((theirs, port), 5)
        pairs = [(theirs, port), ("127.0.0.1", own_port), (ours, own_port)]
        assert reached(tmp_path / "on", pairs, offline=False) == [[True, False, False]] * 2
        assert reached(tmp_path / "off", pairs, offline=True) == [[False, False, False]] * 2
