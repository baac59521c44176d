"""NCCL's settings on an instance, from its size, the devices found on it, and the files found on it.

They are those of Azure's own host image (/etc/nccl.conf, written by components/customizations of azhpc-images), which a
container does not see, with the devices by the names that this instance gives them. What NCCL finds out by itself is
left to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allranks.hardware import infiniband
from allranks.hardware.infiniband import Device
from allranks.hardware.network import LOOPBACK
from allranks.hardware.network_variable import NetworkVariable
from allranks.hardware.sizes import Size
from allranks.hardware.topology import GRAPH_GPUS, Topology

SOCKET_INTERFACE = "NCCL_SOCKET_IFNAME"

RELAXED_FAMILIES = ("ndv4", "ndv5")
"""Where Azure's host image turns on relaxed ordering of PCI writes."""


def settings(
    size: Size | None,
    devices: Sequence[Device],
    topology: Topology,
    *,
    interface: str | None = None,
    ranks: int | None = None,
) -> tuple[NetworkVariable, ...]:
    """Return the variables to set before the first communicator, in the order in which a person reads them.

    size:      None where nobody knows it: then what was found speaks alone
    devices:   what `infiniband.devices` found
    topology:  what `topology.of_family` or `topology.here` found
    interface: that leads to the other instances; None leaves it to NCCL
    ranks:     of this instance; None where as many as it has GPUs

    What is found wins over the table: a size that promises InfiniBand and shows none gets no setting for it.
    """
    return (
        *_sockets(interface),
        *_transport(size, devices),
        *_topology(topology, devices, size.gpus if ranks is None and size else ranks),
    )


def has_infiniband(size: Size | None, devices: Sequence[Device]) -> bool | None:
    """Return whether there is InfiniBand to use: by what was found, else by the size; None where neither says
    anything."""
    if infiniband.usable(devices):
        return True
    if size is not None:
        return False if not size.infiniband else None
    # Without a size it may be a cluster of somebody's own, where Ethernet carries RDMA; Azure's devices have a name.
    return False if devices and all(device.is_accelerated_networking for device in devices) else None


def _sockets(interface: str | None) -> Iterator[NetworkVariable]:
    if interface is not None:
        why = "the interface that leads to rank 0; NCCL may take docker0 or one of InfiniBand's first"
        if interface == LOOPBACK:
            why = "rank 0 is on this machine's loopback, which NCCL takes only when it is named"
        yield NetworkVariable(SOCKET_INTERFACE, f"={interface}", why)


def _transport(size: Size | None, devices: Sequence[Device]) -> Iterator[NetworkVariable]:
    with_infiniband = has_infiniband(size, devices)
    if with_infiniband:
        names = ",".join(map(str, infiniband.usable(devices)))
        # "=": else mlx5_1 stands for mlx5_10 too.
        yield NetworkVariable(
            "NCCL_IB_HCA", f"={names}", "the InfiniBand devices of this instance, and no Ethernet among them"
        )
    elif with_infiniband is False:
        # Source: setup-infiniband.md of azure-compute-docs.
        whose = f"{size.name.removeprefix('Standard_')} has" if size and not size.infiniband else "there is"
        yield NetworkVariable(
            "NCCL_IB_DISABLE", "1", f"{whose} no InfiniBand, and Azure enables no RDMA over Ethernet: use sockets"
        )


def _topology(topology: Topology, devices: Sequence[Device], ranks: int | None) -> Iterator[NetworkVariable]:
    if topology.family in RELAXED_FAMILIES and infiniband.usable(devices):
        why = "Azure's own setting for these sizes: PCI writes of virtual InfiniBand devices may overtake each other"
        yield NetworkVariable("NCCL_IB_PCI_RELAXED_ORDERING", "1", why)
    if topology.file is None:
        return
    why = "which GPU is near which CPU and network device: the virtual machine's own PCI tree does not show it"
    yield NetworkVariable("NCCL_TOPO_FILE", topology.file, why)
    # NCCL refuses a graph that names a GPU which takes no part ("XML Import Channel : dev 3 not found").
    if topology.graph is not None and ranks == GRAPH_GPUS:
        yield NetworkVariable(
            "NCCL_GRAPH_FILE", topology.graph, f"Azure's rings for {GRAPH_GPUS} GPUs, linked in pairs"
        )
    why = "the topology file says which CPUs are near a GPU; the affinity that the job was given does not"
    yield NetworkVariable("NCCL_IGNORE_CPU_AFFINITY", "1", why)
