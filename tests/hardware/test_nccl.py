"""NCCL's and UCX's settings: one size of every family as golden files, and what decides each."""

from pathlib import Path

import pytest

import fake_instance
from allranks.hardware import nccl, network
from allranks.hardware.nccl import Topology
from allranks.hardware.network import Device
from allranks.hardware.sizes import find

GOLDEN, INSTANCES = (Path(__file__).parent / folder for folder in ("golden", "instances"))
SIZES = [file.stem for file in sorted(INSTANCES.glob("*.txt"))]
NOTHING = Topology("")

# What Azure's host image writes to /etc/nccl.conf of each (components/customizations of azhpc-images).
HOST_IMAGE = {
    "ND40rs_v2": {"NCCL_TOPO_FILE=/opt/microsoft/ndv2/topo.xml", "NCCL_IGNORE_CPU_AFFINITY=1"},
    "ND96asr_v4": {
        "NCCL_IB_PCI_RELAXED_ORDERING=1",
        "NCCL_TOPO_FILE=/opt/microsoft/ndv4/topo.xml",
        "NCCL_IGNORE_CPU_AFFINITY=1",
    },
    "ND96isr_H100_v5": {
        "NCCL_IB_PCI_RELAXED_ORDERING=1",
        "NCCL_TOPO_FILE=/opt/microsoft/ndv5/topo.xml",
        "NCCL_IGNORE_CPU_AFFINITY=1",
    },
    "NC96ads_A100_v4": {
        "NCCL_TOPO_FILE=/opt/microsoft/ncv4/topo.xml",
        "NCCL_GRAPH_FILE=/opt/microsoft/ncv4/graph.xml",
        "NCCL_IGNORE_CPU_AFFINITY=1",
    },
}


def instance(folder: Path, name: str) -> tuple[Path, Path]:
    """The sysfs and the files of an instance of the size; device names differ as they do on Azure."""
    fake_instance.add_instance(folder, (INSTANCES / f"{name}.txt").read_text(encoding="utf-8"))
    if family := find(name).topology:
        fake_instance.add_topology(folder / "microsoft", family)
    return folder / "sys/class/infiniband", folder / "microsoft"


@pytest.mark.parametrize("name", SIZES)
def test_golden(tmp_path: Path, name: str) -> None:
    sysfs, microsoft = instance(tmp_path, name)
    size, devices = find(name), network.devices(sysfs)
    files = nccl.topology_of(size.topology, microsoft)
    settings = (
        *nccl.settings(size, devices, files, interface="eth0"),
        *nccl.ucx_settings(size, devices, files, interface="eth0"),
    )
    text = "".join(f"# {setting.why}\n{setting.name}={setting.value}\n" for setting in settings)
    text = text.replace(str(microsoft), "/opt/microsoft")
    assert text == (GOLDEN / f"{name}.conf").read_text(encoding="utf-8")
    assert set(text.splitlines()) >= HOST_IMAGE.get(name, set())


@pytest.mark.parametrize("name", SIZES)
def test_without_the_size_what_is_found_says_the_same(tmp_path: Path, name: str) -> None:
    """But for the reason that names the size."""
    sysfs, microsoft = instance(tmp_path, name)
    size, devices = find(name), network.devices(sysfs)
    for of in (nccl.settings, nccl.ucx_settings):
        known = of(size, devices, nccl.topology_of(size.topology, microsoft))
        guessed = of(None, devices, nccl.topology_here(microsoft))
        if size.topology == "ncv4":
            known = tuple(one for one in known if one.name != "NCCL_GRAPH_FILE")  # needs the number of ranks
        assert [(one.name, one.value) for one in guessed] == [(one.name, one.value) for one in known]


def names(*given: object, **options: object) -> list[str]:
    return [setting.name for setting in nccl.settings(*given, **options)]  # type: ignore[arg-type]


def test_an_unknown_machine_gets_nothing() -> None:
    assert nccl.settings(None, (), NOTHING) == ()
    assert nccl.ucx_settings(None, (), NOTHING, interface="eth0") == ()


ROCE, ACCELERATED = (Device(name, link_layer="Ethernet") for name in ("mlx5_0", "mlx5_an0"))


@pytest.mark.parametrize(
    ("size", "device", "expected"),
    [
        # On a cluster that is not Azure's, Ethernet may well carry RDMA.
        (None, [ROCE], []),
        ("NC24ads_A100_v4", [ROCE], ["NCCL_IB_DISABLE"]),
        (None, [ACCELERATED], ["NCCL_IB_DISABLE"]),
        # Promised by the size and not there: its devices cannot be named, and it is not said that there are none.
        ("ND96asr_v4", [], []),
        ("ND96asr_v4", [Device("mlx5_ib0", state="DOWN")], []),
    ],
)
def test_infiniband_that_is_missing(size: str | None, device: list[Device], expected: list[str]) -> None:
    known = find(size) if size else None
    assert names(known, tuple(device), Topology("ndv4" if size == "ND96asr_v4" else "")) == expected


def test_infiniband_that_the_table_does_not_know_of() -> None:
    (setting,) = nccl.settings(find("NC24ads_A100_v4"), (Device("mlx5_ib0"),), NOTHING)
    assert (setting.name, setting.value) == ("NCCL_IB_HCA", "=mlx5_ib0:1")


@pytest.mark.parametrize(("ranks", "expected"), [(None, True), (4, True), (2, False), (1, False)])
def test_a_graph_of_four_gpus_is_for_four_ranks(ranks: int | None, expected: bool) -> None:
    files = Topology("ncv4", "/t", "/g")
    assert ("NCCL_GRAPH_FILE" in names(find("NC96ads_A100_v4"), (), files, ranks=ranks)) == expected


def test_loopback_is_named_for_nccl_and_not_for_ucx() -> None:
    size = find("NC24ads_A100_v4")
    first, *_ = nccl.settings(size, (), NOTHING, interface="lo")
    assert (first.name, first.value) == ("NCCL_SOCKET_IFNAME", "=lo")
    assert nccl.ucx_settings(size, (), NOTHING, interface="lo") == ()


def test_no_files_of_nccl(tmp_path: Path) -> None:
    assert nccl.configured({"HOME": str(tmp_path)}, tmp_path / "nccl.conf") == {}


def test_the_users_file_wins_over_the_systems(tmp_path: Path) -> None:
    system = tmp_path / "nccl.conf"
    system.write_text("# by the host image\nNCCL_DEBUG=WARN\n\nNCCL_TOPO_FILE = /a\nnothing\n")
    (tmp_path / ".nccl.conf").write_text("NCCL_DEBUG=INFO\n")
    assert nccl.configured({"HOME": str(tmp_path)}, system) == {"NCCL_DEBUG": "INFO", "NCCL_TOPO_FILE": "/a"}
    assert nccl.configured({}, system)["NCCL_DEBUG"] == "WARN"


def test_a_file_that_a_variable_names_stands_for_the_users(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_DEBUG=INFO\n")
    mine = tmp_path / "mine.conf"
    mine.write_text("NCCL_ALGO=Ring\n")
    found = nccl.configured({"HOME": str(tmp_path), "NCCL_CONF_FILE": str(mine)}, tmp_path / "nothing")
    assert found == {"NCCL_ALGO": "Ring"}
