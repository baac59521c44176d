"""What an instance shows of its hardware, as folders of a test's own."""

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


def add_instance(root: Path, description: str) -> None:
    """The /sys of an instance, from a description: see tests/hardware/instances."""
    pci, rdma = root / "sys/bus/pci/devices", root / "sys/class/infiniband"
    for line in description.splitlines():
        kind, *words = line.split("#")[0].split(maxsplit=2) or ("",)
        if kind == "pci":
            address, rest = words
            ids, pci_class, numa = rest.split()
            vendor, device = ids.split(":")
            folder = pci / address
            folder.mkdir(parents=True)
            for file, text in (("vendor", vendor), ("device", device), ("class", pci_class)):
                (folder / file).write_text(f"0x{text}\n")
            (folder / "numa_node").write_text(f"{numa}\n")
        elif kind in ("numa", "cpus"):
            place, name = {"numa": ("node", "node"), "cpus": ("cpu", "cpu")}[kind]
            for number in range(int(words[0])):
                (root / "sys/devices/system" / place / f"{name}{number}").mkdir(parents=True)
        elif kind == "infiniband":
            add_device(rdma, words[0], rate=words[1])
        elif kind == "down":
            add_device(rdma, words[0], rate=words[1], state="1: DOWN")
        elif kind == "ethernet":
            add_device(rdma, words[0], rate=words[1], link_layer="Ethernet")
        elif kind:
            raise ValueError(line)
