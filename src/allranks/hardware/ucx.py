"""UCX's settings on an instance. Open MPI sends over UCX, and with it mpi4py and Horovod's control messages.

Sources: the all-reduce of azurehpc-health-checks (customTests/azure_nccl_allreduce.nhc), which keeps UCX on the
interface and enables relaxed ordering; azhpc-images#491, where jobs on several instances fail unless UCX is given the
InfiniBand device by its name on each instance. By default UCX uses every device (open-mpi/ompi#9881).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allranks.hardware import infiniband
from allranks.hardware.infiniband import Device
from allranks.hardware.nccl import RELAXED_FAMILIES, has_infiniband
from allranks.hardware.network import LOOPBACK
from allranks.hardware.network_variable import NetworkVariable
from allranks.hardware.sizes import Size
from allranks.hardware.topology import Topology


def settings(
    size: Size | None, devices: Sequence[Device], topology: Topology, *, interface: str | None = None
) -> tuple[NetworkVariable, ...]:
    """Return the variables to set before MPI starts; the arguments are as in `nccl.settings`."""
    return tuple(_settings(size, devices, topology, interface))


def _settings(
    size: Size | None, devices: Sequence[Device], topology: Topology, interface: str | None
) -> Iterator[NetworkVariable]:
    with_infiniband = has_infiniband(size, devices)
    if with_infiniband:
        names = ",".join(map(str, infiniband.usable(devices)))
        yield NetworkVariable("UCX_NET_DEVICES", names, "MPI over the InfiniBand devices of this instance alone")
        if topology.family in RELAXED_FAMILIES:
            yield NetworkVariable(
                "UCX_IB_PCI_RELAXED_ORDERING", "on", "as for NCCL, in Azure's health check of these sizes"
            )
    elif with_infiniband is False and interface not in (None, LOOPBACK):
        yield NetworkVariable(
            "UCX_NET_DEVICES", str(interface), "MPI over the interface that leads to rank 0: no InfiniBand here"
        )
