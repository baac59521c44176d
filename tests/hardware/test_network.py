import shutil
import subprocess
import sys

import pytest

from allranks.hardware.network import interface_towards


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "localhost"])
def test_loopback(address: str) -> None:
    assert interface_towards(address) == "lo"


def test_a_name_that_nobody_knows() -> None:
    assert interface_towards("no-such-host.invalid") is None


IN_A_NETWORK = """
ip link set lo up
ip link add eth7 type veth peer name far0
ip addr add 10.91.0.1/24 dev eth7
ip link set eth7 up
ip link set far0 up
exec "$0" -c '
import sys
from allranks.hardware.network import interface_towards
print(*map(interface_towards, sys.argv[1:]))
' "$@"
"""


def networks_can_be_made() -> bool:
    tools = shutil.which("ip") and shutil.which("unshare")
    return bool(tools) and subprocess.run(["unshare", "-Urn", "true"], check=False).returncode == 0


@pytest.mark.skipif(not networks_can_be_made(), reason="needs ip and user namespaces")
def test_a_network_of_its_own() -> None:
    """The neighbour's address, one's own (which the kernel routes by lo), and one that no route leads to."""
    command = ["unshare", "-Urn", "sh", "-ec", IN_A_NETWORK, sys.executable, "10.91.0.2", "10.91.0.1", "10.92.0.1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended
    assert ended.stdout.split() == ["eth7", "eth7", "None"]
