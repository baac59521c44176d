"""NCCL's settings on an instance, from its size and the devices and files found on it.

They are those of Azure's own host image (/etc/nccl.conf, written by components/customizations of azhpc-images), which a
container does not see, with the device names of this instance. Whatever NCCL detects by itself is not set.
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
"""The families for which Azure's host image enables relaxed ordering of PCI writes."""


def settings(
    size: Size | None,
    devices: Sequence[Device],
    topology: Topology,
    *,
    interface: str | None = None,
    ranks: int | None = None,
) -> tuple[NetworkVariable, ...]:
    """Return the variables to set before the first communicator is created, in reading order.

    size:      None if it is unknown; only what was found on the instance counts then
    devices:   from `infiniband.devices`
    topology:  from `topology.of_family` or `topology.here`
    interface: the one that leads to the other instances; None leaves the choice to NCCL
    ranks:     on this instance; None: one per GPU

    What was found takes precedence over the table: a size with InfiniBand gets no setting for it if none was found.
    """
    return (
        *_sockets(interface),
        *_transport(size, devices),
        *_topology(topology, devices, size.gpus if ranks is None and size else ranks),
    )


def has_infiniband(size: Size | None, devices: Sequence[Device]) -> bool | None:
    """Return whether there is usable InfiniBand, by the devices, else by the size; None if neither determines it."""
    if infiniband.usable(devices):
        return True
    if size is not None:
        return False if not size.infiniband else None
    # Without a size this may be a private cluster with RDMA over Ethernet; Azure's Ethernet is known by its name.
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
        # Without "=", mlx5_1 would also match mlx5_10.
        yield NetworkVariable(
            "NCCL_IB_HCA", f"={names}", "the InfiniBand devices of this instance, and no Ethernet among them"
        )
    elif with_infiniband is False:
        # Source: setup-infiniband.md of azure-compute-docs.
        clause = f"{size.name.removeprefix('Standard_')} has" if size and not size.infiniband else "there is"
        yield NetworkVariable(
            "NCCL_IB_DISABLE", "1", f"{clause} no InfiniBand, and Azure enables no RDMA over Ethernet: use sockets"
        )


def _topology(topology: Topology, devices: Sequence[Device], ranks: int | None) -> Iterator[NetworkVariable]:
    if topology.family in RELAXED_FAMILIES and infiniband.usable(devices):
        why = "Azure's own setting for these sizes: PCI writes of virtual InfiniBand devices may overtake each other"
        yield NetworkVariable("NCCL_IB_PCI_RELAXED_ORDERING", "1", why)
    if topology.file is None:
        return
    why = "which GPU is near which CPU and network device: the virtual machine's own PCI tree does not show it"
    yield NetworkVariable("NCCL_TOPO_FILE", topology.file, why)
    # NCCL rejects a graph that names a GPU outside the communicator ("XML Import Channel : dev 3 not found").
    if topology.graph is not None and ranks == GRAPH_GPUS:
        yield NetworkVariable(
            "NCCL_GRAPH_FILE", topology.graph, f"Azure's rings for {GRAPH_GPUS} GPUs, linked in pairs"
        )
    why = "the topology file says which CPUs are near a GPU; the affinity that the job was given does not"
    yield NetworkVariable("NCCL_IGNORE_CPU_AFFINITY", "1", why)
