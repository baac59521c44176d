"""The files that describe a virtual machine's real PCI tree to NCCL. The guest does not see that tree.

Azure's host image puts the files of every family into /opt/microsoft (ndv4-topo.xml), and at boot those of the
machine's own size into a folder (ndv4/topo.xml); components/setup_sku_customizations.sh of azhpc-images. A container
has them only if the platform or the image provides them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/opt/microsoft")

FAMILIES = ("ndv2", "ndv4", "ndv5", "ncv4")
"""The families of sizes that have files."""

GRAPH_FAMILIES = ("ncv4",)
"""The families that also have a graph."""

GRAPH_GPUS = 4
"""The GPUs that ncv4's graph names, 0 to 3 (topology/ncv4-graph.xml of azhpc-images)."""


@dataclass(frozen=True)
class Topology:
    """The files of a family of sizes.

    family: the host image's name for it: ndv4
    file:   for NCCL_TOPO_FILE; None if it does not exist
    graph:  for NCCL_GRAPH_FILE; None if it does not exist, as for most families
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
    """Return the files of this machine's family, by the one folder that the host image creates; else none."""
    families = [family for family in FAMILIES if (folder / family / "topo.xml").is_file()]
    return of_family(families[0] if len(families) == 1 else "", folder)


def _first(folder: Path, family: str, name: str) -> str | None:
    places = (folder / family / name, folder / f"{family}-{name}")
    return next((str(place) for place in places if place.is_file()), None)
