from pathlib import Path

import pytest

import fake_instance
from allranks.hardware.nccl import Topology, topology_here, topology_of


@pytest.mark.parametrize("family", ["ndv2", "ndv4", "ndv5"])
def test_a_family(tmp_path: Path, family: str) -> None:
    fake_instance.add_topology(tmp_path, family)
    expected = Topology(family, str(tmp_path / family / "topo.xml"))
    assert topology_of(family, tmp_path) == expected
    assert topology_here(tmp_path) == expected


def test_the_one_that_has_a_graph(tmp_path: Path) -> None:
    fake_instance.add_topology(tmp_path, "ncv4")
    graph = str(tmp_path / "ncv4" / "graph.xml")
    assert topology_here(tmp_path) == Topology("ncv4", str(tmp_path / "ncv4" / "topo.xml"), graph)


def test_the_file_beside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "ndv4-topo.xml").touch()
    assert topology_of("ndv4", tmp_path) == Topology("ndv4", str(tmp_path / "ndv4-topo.xml"))


def test_files_of_every_family_do_not_tell_which_one_it_is(tmp_path: Path) -> None:
    for family in ("ndv2", "ndv4"):
        (tmp_path / f"{family}-topo.xml").touch()
    assert topology_here(tmp_path) == Topology("")
    for family in ("ndv2", "ndv4"):
        (tmp_path / family).mkdir()
        (tmp_path / family / "topo.xml").touch()
    assert topology_here(tmp_path) == Topology("")


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "ndv4").mkdir()
    (tmp_path / "ndv4" / "topo.xml").symlink_to(tmp_path / "gone.xml")
    assert topology_of("ndv4", tmp_path) == Topology("ndv4")


def test_no_files(tmp_path: Path) -> None:
    assert topology_of("ndv4", tmp_path / "nothing") == Topology("ndv4")
    assert topology_of("", tmp_path) == Topology("")
    assert topology_here(tmp_path / "nothing") == Topology("")
