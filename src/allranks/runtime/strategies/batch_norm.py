"""Batch normalization over the samples of all ranks."""

from __future__ import annotations

import torch
from torch import nn

from allranks.errors import InputError, Problem


def synchronize(model: nn.Module, device: torch.device) -> nn.Module:
    """Return the model with its batch normalizations replaced by torch's SyncBatchNorm, which has the same parameters.

    Raise InputError on the CPU, for which SyncBatchNorm has no implementation.
    """
    if device.type == "cpu":
        raise InputError(
            Problem(
                where="sync_batchnorm",
                found="the ranks train on CPUs",
                expected="GPUs: torch.nn.SyncBatchNorm has no implementation for CPUs",
                fix="leave sync_batchnorm out",
            )
        )
    synchronized: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    return synchronized
