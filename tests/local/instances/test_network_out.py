"""What a process on an instance of the rack reaches: what this machine reaches, but nothing that it serves itself."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme

import bounded
from allranks.local.engine import run
from allranks.local.instances import network_out
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace

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
NAMES_AND_PAGES = """
import http.server, socket, ssl, sys, threading
names = socket.socket(type=socket.SOCK_DGRAM)
names.bind(("", 53))
def answer_names():
    while True:
        query, asker = names.recvfrom(512)
        end = query.index(0, 12) + 5
        is_ipv4 = query[end - 4 : end - 2] == b"\\0\\1"
        with socket.socket(type=socket.SOCK_DGRAM) as own:
            own.connect(asker)
            address = own.getsockname()[0]
        record = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4" + socket.inet_aton(address)
        header = query[:2] + b"\\x81\\x80\\0\\1\\0" + bytes([is_ipv4]) + bytes(4)
        names.sendto(header + query[12:end] + record * is_ipv4, asker)
class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers["Host"].encode())
pages = http.server.HTTPServer(("", 443), Pages)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(sys.argv[1])
pages.socket = context.wrap_socket(pages.socket, server_side=True)
threading.Thread(target=answer_names, daemon=True).start()
print(443, flush=True)
pages.serve_forever()
"""
READS = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[1])
print(urllib.request.urlopen("https://pages.example/", timeout=20, context=context).read().decode())
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
def serving(*prefix: str, program: Sequence[str] = (SERVER,)) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server, and yield its process and its port."""
    with bounded.Popen([*prefix, sys.executable, "-c", *program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def machine_beside(*program: str) -> Iterator[tuple[str, str, int]]:
    """Yield this machine's address in a network with another machine, and the address and port of a server there."""
    with serving("unshare", "--net", program=program or (SERVER,)) as (process, port):
        # Addresses for benchmarks (RFC 2544), of which each process takes its own: tests run in parallel.
        ours, theirs = (str(ip_address("198.18.0.0") + process.pid % (1 << 15) * 4 + host) for host in (1, 2))
        name = f"test{process.pid}"[:15]
        inside = ["nsenter", "--target", str(process.pid), "--net"]
        subprocess.run(
            ["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid)], check=True
        )
        try:
            for prefix, link, address in (([], name, ours), (inside, "eth0", theirs)):
                subprocess.run([*prefix, "ip", "addr", "add", f"{address}/30", "dev", link], check=True)
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


@pytest.fixture(autouse=True)
def _way_out() -> None:
    if network_out.usable() is None:
        pytest.skip("this machine has no default route, or no /dev/net/tun")


def test_what_an_instance_reaches(tmp_path: Path) -> None:
    with machine_beside() as (ours, theirs, port), serving() as (_, own_port):
        assert socket.create_connection((theirs, port), 5)
        pairs = [(theirs, port), ("127.0.0.1", own_port), (ours, own_port)]
        assert reached(tmp_path / "on", pairs, offline=False) == [[True, False, False]] * 2
        assert reached(tmp_path / "off", pairs, offline=True) == [[False, False, False]] * 2


def test_from_an_instance_a_name_resolves_and_https_connects(tmp_path: Path) -> None:
    code, ca = tmp_path / "code", trustme.CA()
    code.mkdir()
    (code / "read.py").write_text(READS)
    ca.cert_pem.write_to_path(code / "authority.pem")
    ca.issue_cert("pages.example").private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    (tmp_path / "job.yml").write_text(
        f"type: command\ncommand: {sys.executable} read.py authority.pem\ncode: code\nenvironment: azureml:own:1\n"
        "resources: {instance_count: 2}\n"
    )
    run_it = [
        sys.executable,
        "-m",
        "allranks.cli.main",
        "run",
        "job.yml",
        "--instances",
        "rack",
        "--no-track",
        "--json",
    ]
    # This machine asks the other one for names, but only for what runs in this namespace of mounts.
    mount = f"mount --bind resolv.conf /etc/resolv.conf && {shlex.join(run_it)}"
    with machine_beside(NAMES_AND_PAGES, str(tmp_path / "own.pem")) as (_, theirs, _):
        (tmp_path / "resolv.conf").write_text(f"nameserver {theirs}\n")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", mount], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (step,) = json.loads(done.stdout)["steps"]
    assert [Path(rank["log"]).read_text("utf-8") for rank in step["ranks"]] == ["pages.example\n"] * 2
