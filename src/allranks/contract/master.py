"""The master's address and port, at which the ranks of a job connect: on the first instance."""

from __future__ import annotations

from collections.abc import Mapping

from allranks.contract import variables

MASTER_PORT = 6105
"""The default port of Azure ML (its distributed GPU training guide)."""

LOOPBACK = "127.0.0.1"


def port(environ: Mapping[str, str]) -> int:
    """Return MASTER_PORT, or Azure ML's default. Raise InputError if MASTER_PORT is not a port."""
    return variables.integer(environ, "MASTER_PORT", minimum=1, below=65536, default=MASTER_PORT)


def address(environ: Mapping[str, str], instance_count: int) -> str | None:
    """Return the first instance's address if no process launcher sets it; None if several instances have no address.

    MASTER_ADDR comes first: if Azure ML does not set it, the user or an outer launcher did. Next is
    AZ_BATCH_MASTER_NODE, such as `10.0.0.4:6000`, whose port is Azure Batch's own and is dropped.
    AZ_BATCHAI_MPI_MASTER_NODE is meant for a single instance, and may be `localhost`, which is not an address for
    several (hi-ml#588). Some clusters outside Azure ML set MASTER_IP.
    """
    if master_addr := variables.text(environ, "MASTER_ADDR"):
        return master_addr
    if batch := variables.text(environ, "AZ_BATCH_MASTER_NODE"):
        return split(batch)[0]
    single = variables.text(environ, "AZ_BATCHAI_MPI_MASTER_NODE")
    if single and (instance_count == 1 or single not in ("localhost", LOOPBACK)):
        return single
    return variables.text(environ, "MASTER_IP") or (LOOPBACK if instance_count == 1 else None)


def unusual_port(port: int) -> dict[str, str]:
    """Return {"MASTER_PORT": port} if the port is not the default, else {}."""
    return {} if port == MASTER_PORT else {"MASTER_PORT": str(port)}


def split(endpoint: str) -> tuple[str, int | None]:
    """Split `host:port` into host and port. Without a port, return the host and None."""
    host, _, tail = endpoint.rpartition(":")
    return (host, int(tail)) if host and tail.isdecimal() else (endpoint, None)
