"""Names of instances resolve in both directions."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.plan import digest
from allranks.plan.graph import Code, Step
from allranks_command import write

NAMES = """
import socket
for address in ("{0}", "{1}", "::ffff:{1}"):
    name, _ = socket.getnameinfo((address, 80), socket.NI_NAMEREQD)
    print(socket.gethostbyname(name) if ":" not in address else name)
print(sorted({{address[0] for *_, address in socket.getaddrinfo(socket.gethostname(), 80)}}))
"""

DDP = """
import torch
from torch import distributed
distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
model(torch.ones(2, 4)).sum().backward()
print("trained", flush=True)
distributed.destroy_process_group()
"""


def _script(text: str) -> str:
    return f"{sys.executable} - <<'END'\n{text}END"


@pytest.mark.parametrize(
    ("instances", "addresses", "mapped"),
    [
        ("rack", ("10.77.0.10", "10.77.0.11"), "node-1.rack"),
        ("loopback", ("127.0.0.1", "127.0.0.2"), "127.0.0.2"),
    ],
)
def test_an_address_has_a_name_also_in_its_ipv6_form(
    instances: str, addresses: tuple[str, str], mapped: str, run_steps, rack_works: bool
) -> None:
    if not rack_works:
        pytest.skip("without user namespaces, addresses on this machine have its own names")
    # Of two steps on the same instances, the second has more of them.
    steps = (
        Step("one", "true"),
        Step("two", _script(NAMES.format(*addresses)), instance_count=2, after=("one",), distribution=PyTorch(1)),
    )
    record = run_steps(*steps, instances=instances)
    assert record.status is Status.COMPLETED, record.verdict
    for place, rank in enumerate(record.step("two").ranks):
        assert Path(rank.log).read_text().splitlines() == [*addresses, mapped, str([addresses[place]])]


@pytest.mark.skipif(find_spec("torch") is None, reason="no torch")
def test_torch_finds_the_names_of_its_peers(rack_works: bool, run_steps, tmp_path: Path) -> None:
    if not rack_works:
        pytest.skip("without user namespaces, addresses on this machine have its own names")
    write(tmp_path, "code/train.py", DDP)
    code = Code(str(tmp_path / "code"), digest.of_path(tmp_path / "code"))
    step = Step("train", "python train.py", code=code, instance_count=2, distribution=PyTorch(1))
    record = run_steps(step, instances="rack")
    assert record.status is Status.COMPLETED, record.verdict
    assert [Path(rank.log).read_text() for rank in record.step("train").ranks] == ["trained\n"] * 2
