"""Settings of NCCL and UCX on an instance, from its size and the devices and files found on it.

NCCL's are those of Azure's own host image (/etc/nccl.conf, written by components/customizations of azhpc-images), with
the device names of this instance; a container does not see that file. Whatever NCCL detects by itself is not set.

Open MPI sends over UCX, and with it mpi4py and Horovod's control messages. Sources of UCX's settings: the all-reduce of
azurehpc-health-checks (customTests/azure_nccl_allreduce.nhc), which keeps UCX on the interface and enables relaxed
ordering; azhpc-images#491, where jobs on several instances fail unless UCX is given the name of each instance's
InfiniBand device. By default UCX uses every device (open-mpi/ompi#9881).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.hardware import network
from allranks.hardware.network import LOOPBACK, Device
from allranks.hardware.sizes import Size

SOCKET_INTERFACE = "NCCL_SOCKET_IFNAME"
CONF_FILE = Path("/etc/nccl.conf")
TOPOLOGY_FOLDER = Path("/opt/microsoft")
"""Where Azure's host image puts the files of every family (ndv4-topo.xml), and at boot those of the machine's own size
into a folder (ndv4/topo.xml); components/setup_sku_customizations.sh of azhpc-images. They describe the machine's real
PCI tree to NCCL, which the guest does not see. A container has them only if the platform or the image provides them."""

TOPOLOGY_FAMILIES = ("ndv2", "ndv4", "ndv5", "ncv4")
"""The families of sizes that have topology files."""

GRAPH_FAMILIES = ("ncv4",)
"""The families that also have a graph."""

GRAPH_GPUS = 4
"""The number of GPUs in ncv4's graph (topology/ncv4-graph.xml of azhpc-images)."""

RELAXED_FAMILIES = ("ndv4", "ndv5")
"""The families for which Azure's host image enables relaxed ordering of PCI writes."""


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


def topology_of(family: str, folder: Path = TOPOLOGY_FOLDER) -> Topology:
    """Return the files of a family: those in its folder, else those beside it."""
    if not family:
        return Topology("")
    return Topology(family, _first_file(folder, family, "topo.xml"), _first_file(folder, family, "graph.xml"))


def topology_here(folder: Path = TOPOLOGY_FOLDER) -> Topology:
    """Return the files of this machine's family, which the only folder of a family determines; else no files."""
    families = [family for family in TOPOLOGY_FAMILIES if (folder / family / "topo.xml").is_file()]
    return topology_of(families[0] if len(families) == 1 else "", folder)


def _first_file(folder: Path, family: str, name: str) -> str | None:
    places = (folder / family / name, folder / f"{family}-{name}")
    return next((str(place) for place in places if place.is_file()), None)


@dataclass(frozen=True)
class NetworkVariable:
    """A variable of NCCL or UCX. why: a short reason, for a reader of the log"""

    name: str
    value: str
    why: str


def settings(
    size: Size | None,
    devices: Sequence[Device],
    topology: Topology,
    *,
    interface: str | None = None,
    ranks: int | None = None,
) -> tuple[NetworkVariable, ...]:
    """Return NCCL's variables to set before the first communicator is created, in reading order.

    size:      None if it is unknown; only the files and devices on the instance count then
    devices:   from `network.devices`
    topology:  from `topology_of` or `topology_here`
    interface: the one that leads to the other instances; None: NCCL chooses
    ranks:     on this instance; None: one per GPU

    Devices take precedence over the table: a size with InfiniBand gets no setting for it if no device was found.
    """
    return (
        *_sockets(interface),
        *_transport(size, devices),
        *_topology(topology, devices, size.gpus if ranks is None and size else ranks),
    )


def ucx_settings(
    size: Size | None, devices: Sequence[Device], topology: Topology, *, interface: str | None = None
) -> tuple[NetworkVariable, ...]:
    """Return UCX's variables to set before MPI starts. Its arguments are those of `settings`."""
    name, with_infiniband = "UCX_NET_DEVICES", has_infiniband(size, devices)
    if with_infiniband:
        names = ",".join(map(str, network.usable(devices)))
        found = NetworkVariable(name, names, "MPI over the InfiniBand devices of this instance only")
        if topology.family not in RELAXED_FAMILIES:
            return (found,)
        why = "as for NCCL, in Azure's health check of these sizes"
        return (found, NetworkVariable("UCX_IB_PCI_RELAXED_ORDERING", "on", why))
    if with_infiniband is False and interface not in (None, LOOPBACK):
        why = "MPI over the interface that leads to rank 0: no InfiniBand here"
        return (NetworkVariable(name, str(interface), why),)
    return ()


def has_infiniband(size: Size | None, devices: Sequence[Device]) -> bool | None:
    """Return whether there is usable InfiniBand, by the devices, else by the size; None if neither determines it."""
    if network.usable(devices):
        return True
    if size is not None:
        return False if not size.infiniband else None
    # Without a size this may be a private cluster with RDMA over Ethernet; Azure's Ethernet is known by its name.
    return False if devices and all(device.is_accelerated_networking for device in devices) else None


def configured(environ: Mapping[str, str], system: Path = CONF_FILE) -> dict[str, str]:
    """Return the variables in NCCL's configuration files: the user's take precedence over the system's. Environment
    variables take precedence over both, as in NCCL.

    The user's file is NCCL_CONF_FILE, else ~/.nccl.conf (NCCL's user guide, "Environment Variables"). A missing or
    unreadable file sets nothing.
    """
    user_file = environ.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if (home := environ.get("HOME")) else "")
    return _conf_variables(system) | (_conf_variables(Path(user_file)) if user_file else {})


def _conf_variables(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}


def _sockets(interface: str | None) -> Iterator[NetworkVariable]:
    if interface is not None:
        why = "the interface that leads to rank 0; NCCL may take docker0 or one of InfiniBand's first"
        if interface == LOOPBACK:
            why = "rank 0 is on this machine's loopback, which NCCL uses only if it is set explicitly"
        yield NetworkVariable(SOCKET_INTERFACE, f"={interface}", why)


def _transport(size: Size | None, devices: Sequence[Device]) -> Iterator[NetworkVariable]:
    with_infiniband = has_infiniband(size, devices)
    if with_infiniband:
        # Without "=", mlx5_1 would also match mlx5_10.
        names = "=" + ",".join(map(str, network.usable(devices)))
        why = "the InfiniBand devices of this instance, and no Ethernet among them"
        yield NetworkVariable("NCCL_IB_HCA", names, why)
    elif with_infiniband is False:
        # Source: setup-infiniband.md of azure-compute-docs.
        clause = f"{size.name.removeprefix('Standard_')} has" if size and not size.infiniband else "there is"
        why = f"{clause} no InfiniBand, and Azure enables no RDMA over Ethernet: use sockets"
        yield NetworkVariable("NCCL_IB_DISABLE", "1", why)


def _topology(topology: Topology, devices: Sequence[Device], ranks: int | None) -> Iterator[NetworkVariable]:
    if topology.family in RELAXED_FAMILIES and network.usable(devices):
        why = "Azure's own setting for these sizes: PCI writes of virtual InfiniBand devices may overtake each other"
        yield NetworkVariable("NCCL_IB_PCI_RELAXED_ORDERING", "1", why)
    if topology.file is None:
        return
    why = "which GPU is near which CPU and network device: the virtual machine's own PCI tree does not show it"
    yield NetworkVariable("NCCL_TOPO_FILE", topology.file, why)
    # NCCL rejects a graph that names a GPU outside the communicator ("XML Import Channel : dev 3 not found").
    if topology.graph is not None and ranks == GRAPH_GPUS:
        why = f"Azure's rings for {GRAPH_GPUS} GPUs, linked in pairs"
        yield NetworkVariable("NCCL_GRAPH_FILE", topology.graph, why)
    why = "the topology file contains the CPUs near each GPU; the job's CPU affinity does not reflect them"
    yield NetworkVariable("NCCL_IGNORE_CPU_AFFINITY", "1", why)
