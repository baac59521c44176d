"""Algorithm and bus bandwidth, as nccl-tests defines them (NVIDIA/nccl-tests, doc/PERFORMANCE.md).

The algorithm bandwidth is S / t: the bytes S of the operation over its time t. The bus bandwidth is that times a factor
by which the figures of different collectives and numbers of ranks can be compared with the hardware's. S is the whole
array: of an all-gather what every rank has in the end, of a reduce-scatter what every rank had at first.
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
    """GB/s, where a GB is 10^9 bytes as in nccl-tests. size: bytes."""
    return size / seconds / 1e9


def bus_gb_s(collective: str, size: int, seconds: float, ranks: int) -> float:
    """The same, times the collective's factor for so many ranks."""
    return algorithm_gb_s(size, seconds) * FACTORS[collective](ranks)
