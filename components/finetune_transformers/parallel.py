"""Check that the ranks of a launch train together. On CPUs Hugging Face's libraries may train each rank alone."""

from __future__ import annotations

import hashlib

import torch
from torch import distributed, nn

from allranks.errors import InputError, Problem
from allranks.runtime import RankEnv


def share(batch_size: int, ranks: int) -> int:
    """Return each rank's part of a batch. Raise InputError if the batch is not divisible by the ranks."""
    if batch_size % ranks:
        found = f"{batch_size} for {ranks} ranks"
        raise InputError(Problem("batch_size", found, f"a multiple of {ranks}", "set batch_size to one"))
    return batch_size // ranks


def check_world(env: RankEnv, world_size: int) -> None:
    """Raise InputError if the library's number of ranks differs from the launch's."""
    if world_size != env.world_size:
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size} (launcher {env.launcher})",
                found=f"the library would train {'alone' if world_size == 1 else f'on {world_size} ranks'}",
                expected=f"one training on {env.world_size} ranks",
                fix="leave ACCELERATE_USE_CPU to allranks, or set it to true where there are no GPUs",
            )
        )


def check_weights(env: RankEnv, model: nn.Module) -> None:
    """Raise InputError if the ranks hold different weights after a step. A collective; does nothing on one rank."""
    if env.world_size == 1:
        return
    digests: list[str] = [""] * env.world_size
    distributed.all_gather_object(digests, digest(model))
    different = [rank for rank, other in enumerate(digests) if other != digests[0]]
    if different:
        raise InputError(
            Problem(
                where=f"ranks {', '.join(map(str, different))} of {env.world_size} (launcher {env.launcher})",
                found="other weights than rank 0 after the first step: gradients are not averaged",
                expected="the same weights on every rank",
                fix="set ACCELERATE_USE_CPU=true where there are no GPUs",
            )
        )


def digest(model: nn.Module) -> str:
    """Return a SHA-256 digest of all parameters."""
    hasher = hashlib.sha256()
    for parameter in model.parameters():
        hasher.update(parameter.detach().float().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()
