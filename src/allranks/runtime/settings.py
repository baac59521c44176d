"""Training settings that mean the same under every strategy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from torch import nn

PRECISIONS = ("float32", "bfloat16")
COMPRESSIONS = ("none", "fp16")
ZERO_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class TrainingSettings:
    """Settings for `strategy.prepare`.

    gradient_accumulation_steps: backward passes per optimizer step; their gradients are averaged
    clip_norm:  maximum L2 norm of the gradient of all parameters over all ranks; None: no clipping
    precision:  "float32", or "bfloat16": compute in bfloat16, with weights, gradient sums and outputs in float32
    blocks:     classes of the modules to shard one by one (fsdp) and to recompute (activation checkpointing)
    activation_checkpointing: recompute the blocks in the backward pass instead of storing their activations
    zero_stage: deepspeed: what is sharded: 0 nothing, 1 the optimizer's state, 2 also gradients, 3 also weights
    offload:    fsdp, deepspeed: store the shards in CPU memory
    deepspeed_config: deepspeed: a JSON file whose keys override these settings
    compression: horovod: "none", or "fp16": send gradients as 16-bit floats

    The constructor raises InputError for an invalid value.
    """

    gradient_accumulation_steps: int = 1
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
        if self.gradient_accumulation_steps < 1:
            raise InputError(
                Problem(
                    "gradient_accumulation_steps",
                    str(self.gradient_accumulation_steps),
                    "at least 1",
                    "use a positive number",
                )
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise InputError(
                Problem("clip_norm", str(self.clip_norm), "more than 0", "leave it out to disable clipping")
            )
        if self.activation_checkpointing and not self.blocks:
            raise InputError(
                Problem(
                    where="activation_checkpointing",
                    found="no blocks to recompute",
                    expected="the classes of the model's blocks",
                    fix="set blocks=(Block,), or leave activation_checkpointing out",
                )
            )


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise InputError(Problem(name, repr(value), f"one of {', '.join(map(str, allowed))}", "use one of these"))


def reject_unsupported(strategy: str, settings: TrainingSettings, *names: str) -> None:
    """Raise InputError if one of the named settings, which a strategy does not support, is not at its default."""
    defaults = {field.name: field.default for field in fields(TrainingSettings)}
    for name in names:
        value = getattr(settings, name)
        if value != defaults[name]:
            found = f"{value}, with the strategy {strategy}"
            raise InputError(Problem(name, found, "a strategy that supports it", f"leave {name} out"))
