"""Which devices a rank may use, where it is not as on Azure ML: there every rank has a GPU of its own."""

from __future__ import annotations

from collections.abc import Mapping

SHARED = "ALLRANKS_GPUS_SHARED"
"""Set where several ranks are to train on one GPU, which NCCL refuses."""


def shared(environ: Mapping[str, str]) -> bool:
    """Whether the ranks of an instance are to share its GPUs."""
    return environ.get(SHARED, "") == "1"
