"""Check that /dev/shm is large enough for the ranks of an instance."""

import os
from pathlib import Path

from allranks.errors import Problem

FOLDER = Path("/dev/shm")
MIB = 1 << 20

A_RANK = 64 * MIB
"""Bytes that a rank may need without GPUs. Docker's default for a whole container is the same, which is not enough for
the workers of a data loader according to PyTorch's README; so two ranks need more."""

WITH_NCCL = 1024 * MIB
"""Bytes that NCCL's user guide gives a container (--shm-size=1g, "Runtime and MPI issues"). NCCL needs 4 to 10 MB per
connection, and fails to start without them."""


def needed(ranks: int, *, gpus: bool) -> int:
    """Return the bytes of /dev/shm that the ranks of one instance need. NCCL needs none for a single rank."""
    return max(WITH_NCCL if gpus and ranks > 1 else 0, ranks * A_RANK)


def found(folder: Path = FOLDER) -> int:
    """Return the bytes of this machine's shared memory; 0 if the folder does not exist."""
    try:
        stat = os.statvfs(folder)
    except OSError:
        return 0
    return stat.f_blocks * stat.f_frsize


def problem(total: int, ranks: int, *, gpus: bool) -> Problem | None:
    """Return a problem if `total` bytes are too few for the ranks, with the key that sets the size as its place; else
    None."""
    need = needed(ranks, gpus=gpus)
    if total >= need:
        return None
    why = "NCCL's segments" if gpus and ranks > 1 else "the data loaders' batches"
    found = f"/dev/shm has {mib(total)} for {ranks} {'rank' if ranks == 1 else 'ranks'}"
    fix = f"set resources.shm_size to {max(2, -(-need // (1024 * MIB)))}g, or omit it: the default of Azure ML is 2g"
    return Problem("resources.shm_size", found, f"at least {mib(need)}, for {why}", fix)


def mib(size: int) -> str:
    """Return a size in bytes as text in MiB, with a decimal if it is below ten and not whole."""
    return f"{size / MIB:.0f} MiB" if size >= 10 * MIB or size % MIB == 0 else f"{size / MIB:.1f} MiB"
