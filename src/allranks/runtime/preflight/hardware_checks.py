"""Compare what the instances show of their hardware with the size of the job, and with what NCCL is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import WARNING, Finding

if TYPE_CHECKING:
    from allranks.hardware.sizes import Size


def links(instances: Sequence[Facts], size: Size | None) -> Iterable[Finding]:
    """Yield a warning for each instance with an InfiniBand port slower than the size's, or than other instances'.

    instances: facts of one rank of each instance
    size:      of every instance of the job; None if it is unknown
    """
    promised = (size.infiniband_gbit_s or 0) if size and size.infiniband else 0
    fastest = max((rate for rank in instances for rate in rank.infiniband), default=0.0)
    expected, source = (promised, f"as {size.name} has") if size and promised else (fastest, "as the others have")
    for rank in instances:
        # A rate of 0 is one that the kernel does not report.
        slow = [rate for rate in rank.infiniband if 0 < rate < expected]
        if slow:
            yield Finding(
                "links",
                WARNING,
                f"{len(slow)} of {len(rank.infiniband)} InfiniBand ports on {rank.host} run at {min(slow):g} Gbit/s",
                f"{expected:g} Gbit/s, {source}",
                "every collective waits for the slowest port: look at ibv_devinfo there, and replace the instance",
                rank.instance,
                rank.rank,
            )


def topology(instances: Sequence[Facts], size: Size | None) -> Iterable[Finding]:
    """Yield a warning for each instance with GPUs that is of another size than the job's, or whose NCCL is not told of
    the PCI tree. The arguments are those of `links`."""
    for rank in instances:
        if rank.gpu is None:
            continue
        if size is not None and rank.sizes and size.name not in rank.sizes:
            found = f"{rank.host} has the hardware of {' or '.join(rank.sizes)}"
            expected = f"{size.name}, the size of the job"
            fix = "set ALLRANKS_SIZE to the size of the cluster, or leave it out"
        elif rank.topology_file and not rank.topology_exists:
            found = f"NCCL_TOPO_FILE={rank.topology_file} does not exist on {rank.host}, and NCCL goes on without it"
            expected = "a file of the image"
            fix = "use an image that has it, or unset NCCL_TOPO_FILE"
        elif rank.family and not rank.topology_file:
            found = f"NCCL knows no PCI topology on {rank.host}, and the virtual machine does not show it"
            expected = f"NCCL_TOPO_FILE with Azure's file for {rank.family}"
            fix = f"put {rank.family}-topo.xml of Azure/azhpc-images into /opt/microsoft, as allranks's images do"
        else:
            continue
        yield Finding("topology", WARNING, found, expected, fix, rank.instance, rank.rank)


def topology_text(instances: Sequence[Facts]) -> str:
    """Return what an "ok" finding says."""
    first = instances[0]
    if first.gpu is None:
        return "no GPUs"
    name = " or ".join(first.sizes) or "hardware of no known size"
    return f"{name}, {first.topology_file or 'which needs no topology file'}"
