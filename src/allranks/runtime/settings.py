"""How a model is trained, in words that mean the same under every strategy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from torch import nn

PRECISIONS = ("float32", "bfloat16")
COMPRESSIONS = ("none", "fp16")
ZERO_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class Settings:
    """What `strategy.prepare` is asked for.

    accumulate: backward passes before the weights change; their gradients are averaged
    clip_norm:  the largest L2 norm of the gradient of all parameters over all ranks, as it is applied; None: any
    precision:  "float32"; "bfloat16" computes in it, and keeps weights, gradients' sums and outputs in float32
    blocks:     classes of the modules that are sharded one by one (fsdp) and recomputed (activation checkpointing)
    activation_checkpointing: recompute the blocks in the backward pass instead of keeping what is inside them
    zero_stage: deepspeed: what is sharded: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 weights too
    offload:    fsdp, deepspeed: keep what is sharded in the memory of the CPU
    deepspeed_config: deepspeed: a JSON file, whose keys win over all that is above
    compression: horovod: "fp16" sends gradients in half the bits

    Raises InputError for a value that is none of these.
    """

    accumulate: int = 1
    clip_norm: float | None = None
    precision: str = "float32"
    blocks: tuple[type[nn.Module], ...] = ()
    activation_checkpointing: bool = False
    zero_stage: int = 2
    offload: bool = False
    deepspeed_config: Path | None = None
    compression: str = "none"

    def __post_init__(self) -> None:
        _one_of("precision", self.precision, PRECISIONS)
        _one_of("compression", self.compression, COMPRESSIONS)
        _one_of("zero_stage", self.zero_stage, ZERO_STAGES)
        if self.accumulate < 1:
            raise InputError(Problem("accumulate", str(self.accumulate), "at least 1", "give a positive number"))
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise InputError(
                Problem("clip_norm", str(self.clip_norm), "more than 0", "leave it out where nothing is to be clipped")
            )
        if self.activation_checkpointing and not self.blocks:
            raise InputError(
                Problem(
                    where="activation_checkpointing",
                    found="no blocks to recompute",
                    expected="the classes of the model's blocks",
                    fix="give blocks=(Block,), or leave activation_checkpointing out",
                )
            )


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise InputError(Problem(name, repr(value), f"one of {', '.join(map(str, allowed))}", "give one of these"))
