"""What NCCL is to know of a virtual machine's PCI tree, which a guest does not see as it is.

Azure's host image puts the files of every family into /opt/microsoft (ndv4-topo.xml), and at boot those of the
machine's own size into a folder (ndv4/topo.xml); components/setup_sku_customizations.sh of azhpc-images. In a container
they are there where the platform or the image brings them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/opt/microsoft")

FAMILIES = ("ndv2", "ndv4", "ndv5", "ncv4")
"""The families of sizes that have files."""

GRAPH_FAMILIES = ("ncv4",)
"""Those that have a graph too."""

GRAPH_GPUS = 4
"""The GPUs that ncv4's graph names, 0 to 3 (topology/ncv4-graph.xml of azhpc-images)."""


@dataclass(frozen=True)
class Topology:
    """What there is for a family of sizes.

    family: as the host image calls it: ndv4
    file:   for NCCL_TOPO_FILE; None where it is not there
    graph:  for NCCL_GRAPH_FILE; None where it is not there, as for most families
    """

    family: str
    file: str | None = None
    graph: str | None = None


def of_family(family: str, folder: Path = FOLDER) -> Topology:
    """Return the family's files: those in its folder, else those beside it."""
    if not family:
        return Topology("")
    return Topology(family, _first(folder, family, "topo.xml"), _first(folder, family, "graph.xml"))


def here(folder: Path = FOLDER) -> Topology:
    """Return the files of this machine's own family, told by the one folder that the host image makes; nothing without
    one."""
    own = [family for family in FAMILIES if (folder / family / "topo.xml").is_file()]
    return of_family(own[0] if len(own) == 1 else "", folder)


def _first(folder: Path, family: str, name: str) -> str | None:
    places = (folder / family / name, folder / f"{family}-{name}")
    return next((str(place) for place in places if place.is_file()), None)
