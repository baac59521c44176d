"""Algorithm and bus bandwidth, as nccl-tests defines them (NVIDIA/nccl-tests, doc/PERFORMANCE.md).

The algorithm bandwidth is S / t: the bytes S of the operation over its time t. The bus bandwidth is that times a
factor, so that figures of different collectives and numbers of ranks can be compared with the hardware's. S is the size
of the whole array: an all-gather's output on each rank, a reduce-scatter's input on each rank.
"""

from __future__ import annotations

from collections.abc import Callable

FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda _: 1.0,
    "send_receive": lambda _: 1.0,  # src/sendrecv.cu; the document has no line for it
}


def algorithm_gb_s(size: int, seconds: float) -> float:
    """Return the algorithm bandwidth in GB/s (10^9 bytes, as in nccl-tests). size: bytes."""
    return size / seconds / 1e9


def bus_gb_s(collective: str, size: int, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth: the algorithm bandwidth times the collective's factor for this number of ranks."""
    return algorithm_gb_s(size, seconds) * FACTORS[collective](ranks)
