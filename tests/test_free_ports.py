"""A port that a test has found stays its own, also beside another process of pytest and the kernel's own choice."""

import subprocess
import sys
from pathlib import Path

import free_ports


def test_no_other_process_finds_the_same() -> None:
    ours = {free_ports.free_port() for _ in range(50)}
    program = "import free_ports\nfor _ in range(50): print(free_ports.free_port())"
    folder = Path(free_ports.__file__).parent
    found = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=True, timeout=60)
    theirs = {int(port) for port in found.stdout.split()}
    assert (len(ours), len(theirs), ours & theirs) == (50, 50, set())
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert not any(first <= port <= last for port in ours | theirs)
