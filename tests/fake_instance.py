"""What an instance shows of its hardware, as folders of a test's own."""

from __future__ import annotations

from pathlib import Path

HDR = "200 Gb/sec (4X HDR)"
NDR = "400 Gb/sec (4X NDR)"
EDR = "100 Gb/sec (4X EDR)"


def add_device(
    sysfs: Path, name: str, *, rate: str = HDR, link_layer: str = "InfiniBand", state: str = "4: ACTIVE", port: int = 1
) -> None:
    """A port of an RDMA device, as Linux lists it below /sys/class/infiniband."""
    folder = sysfs / name / "ports" / str(port)
    folder.mkdir(parents=True)
    for file, text in (("rate", rate), ("link_layer", link_layer), ("state", state), ("phys_state", "5: LinkUp")):
        (folder / file).write_text(f"{text}\n")


def add_accelerated_networking(sysfs: Path, name: str = "mlx5_an0") -> None:
    """Azure's fast Ethernet, which is an RDMA device too."""
    add_device(sysfs, name, rate="100 Gb/sec (4X EDR)", link_layer="Ethernet")


def add_topology(folder: Path, family: str) -> None:
    """Azure's files for NCCL as an instance of the family has them: every family's, and in a folder its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in ("ndv2", "ndv4", "ndv5", "ncv4"):
        (folder / f"{one}-topo.xml").write_text("<system/>")
    (folder / "ncv4-graph.xml").write_text("<graphs/>")
    (folder / family).mkdir()
    (folder / family / "topo.xml").symlink_to(folder / f"{family}-topo.xml")
    if family == "ncv4":
        (folder / family / "graph.xml").symlink_to(folder / "ncv4-graph.xml")
