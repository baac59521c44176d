"""Slow ports, instances of another size, and an NCCL without its topology file are warnings with the instance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from allranks.hardware.sizes import find
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import WARNING
from allranks.runtime.preflight.hardware_checks import links, topology, topology_text

NDV4 = find("ND96asr_v4")
TWO = [
    Facts(
        8 * number,
        number,
        16,
        f"node-{number}",
        {},
        "GPU-0",
        False,
        (),
        2 << 30,
        (200.0,) * 8,
        False,
        (NDV4.name,),
        "ndv4",
        "/opt/microsoft/ndv4-topo.xml",
        True,
    )
    for number in range(2)
]


def second(**changes: object) -> list[Facts]:
    """Two instances, of which the second is changed."""
    return [TWO[0], replace(TWO[1], **changes)]  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [NDV4, None])
def test_two_instances_as_they_should_be(size: object) -> None:
    assert list(links(TWO, size)) == []  # type: ignore[arg-type]
    assert list(topology(TWO, size)) == []  # type: ignore[arg-type]
    assert topology_text(TWO) == "Standard_ND96asr_v4, /opt/microsoft/ndv4-topo.xml"
    assert Facts.of_text(TWO[1].as_text()) == TWO[1]


@pytest.mark.parametrize(("size", "source"), [(NDV4, "as Standard_ND96asr_v4 has"), (None, "as the others have")])
def test_a_slow_port(size: object, source: str) -> None:
    instances = second(infiniband=(200.0,) * 6 + (100.0, 0.0))
    (finding,) = links(instances, size)  # type: ignore[arg-type]
    assert (finding.state, finding.instance, finding.rank) == (WARNING, 1, 8)
    assert finding.found == "1 of 8 InfiniBand ports on node-1 run at 100 Gbit/s"
    assert finding.expected == f"200 Gbit/s, {source}"


@pytest.mark.parametrize(
    ("changes", "found", "fix"),
    [
        (
            {"sizes": ("Standard_ND96isr_H100_v5",)},
            "node-1 has the hardware of Standard_ND96isr_H100_v5",
            "ALLRANKS_SIZE",
        ),
        ({"topology_file": ""}, "NCCL knows no PCI topology on node-1", "ndv4-topo.xml"),
        ({"topology_exists": False}, "NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml does not exist", "unset"),
    ],
)
def test_a_topology_that_is_wrong(changes: dict[str, object], found: str, fix: str) -> None:
    (finding,) = topology(second(**changes), NDV4)
    assert (finding.state, finding.instance, finding.rank) == (WARNING, 1, 8)
    assert found in finding.found
    assert fix in finding.fix


def test_without_gpus_or_a_size_nothing_is_said() -> None:
    assert list(topology(second(gpu=None, topology_file=""), None)) == []
    assert list(topology(second(sizes=(), family="", topology_file=""), NDV4)) == []
    assert topology_text([replace(TWO[0], gpu=None)]) == "no GPUs"
