"""Training settings that mean the same under every strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from torch import nn

AUTO = "auto"
PRECISIONS = ("float32", "bfloat16", "float16", AUTO)
ZERO_STAGES = (0, 1, 2, 3)


@dataclass(frozen=True)
class TrainingSettings:
    """Settings for `strategy.prepare`.

    gradient_accumulation_steps: backward passes per optimizer step; their gradients are averaged; None: 1
    per_device_train_batch_size: samples of a rank in a backward pass, for DeepSpeed's file to agree with; the training
                loop makes the batches
    passes_per_batch: parts of a batch, of the sampler; each is a backward pass, so a step has
                gradient_accumulation_steps x passes_per_batch of them
    max_grad_norm: maximum L2 norm of the gradient of all parameters over all ranks; 0 or None: no clipping;
                infinity: only measure the norm, as `training.gradient_norm`
    precision:  "float32", "bfloat16" or "float16": compute in this type, with weights, gradient sums and outputs in
                float32; float16 scales the loss, and skips steps whose gradients overflow; None: float32; "auto":
                bfloat16 on GPUs that have it, float16 on older ones (V100, T4), float32 on the CPU.
                Under deepspeed, float16 (GPUs, ZeRO 1 to 3) and a file with the section bf16 have 16-bit weights,
                with float32 copies in the optimizer; "auto" is the type that the file enables, and float32 in place
                of one that it disables, and of float16 with ZeRO 0
    tf32:       compute float32 matrix products in TF32 on GPUs that have it; applies to the whole process
    compile:    compile the blocks with torch.compile, each by itself; the whole model if `blocks` is empty
    blocks:     classes of the modules to shard one by one (fsdp), to compile, and to recompute
    activation_checkpointing: recompute the blocks in the backward pass instead of storing their activations
    sync_batchnorm: compute the statistics of batch normalization over all ranks; GPUs only
    find_unused_parameters: ddp: for a model that does not use all of its parameters in every step
    shard_group_size: fsdp: ranks that share one copy of the model, usually those of an instance; the groups hold
                replicas (HSDP); None: all ranks share one copy
    deepspeed_stage: deepspeed: what is sharded: 0 nothing, 1 the optimizer's state, 2 also gradients, 3 also weights;
                None: 2
    offload:    fsdp, deepspeed: store the shards in CPU memory
    deepspeed_config: deepspeed: a JSON file with DeepSpeed's own keys; "auto" stands for these settings
    warmup_steps, max_steps: deepspeed: steps of the warm-up and of the whole training, for "auto" in the scheduler of
                its file; a schedule of the training loop has its own

    The settings that can be None also have a key in DeepSpeed's file: None takes the file's value, and another value
    must agree with the file. The constructor raises InputError for an invalid value.
    """

    gradient_accumulation_steps: int | None = None
    per_device_train_batch_size: int | None = None
    passes_per_batch: int = 1
    max_grad_norm: float | None = None
    precision: str | None = None
    tf32: bool = False
    compile: bool = False
    blocks: tuple[type[nn.Module], ...] = ()
    activation_checkpointing: bool = False
    sync_batchnorm: bool = False
    find_unused_parameters: bool = False
    shard_group_size: int | None = None
    deepspeed_stage: int | None = None
    offload: bool = False
    deepspeed_config: str | Path | None = None
    warmup_steps: int | None = None
    max_steps: int | None = None

    @property
    def backward_passes(self) -> int:
        """Backward passes per optimizer step."""
        return (self.gradient_accumulation_steps or 1) * self.passes_per_batch

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))  # of a list, which isinstance does not take
        _one_of("precision", self.precision, (*PRECISIONS, None))
        _one_of("deepspeed_stage", self.deepspeed_stage, (*ZERO_STAGES, None))
        for name in (
            "gradient_accumulation_steps",
            "per_device_train_batch_size",
            "passes_per_batch",
            "shard_group_size",
        ):
            value = getattr(self, name)
            if value is not None and (value < 1 or value != int(value)):
                raise InputError(Problem(name, str(value), "a whole number, at least 1", "use a positive number"))
        if self.max_grad_norm is not None and (math.isnan(self.max_grad_norm) or self.max_grad_norm < 0):
            raise InputError(
                Problem("max_grad_norm", str(self.max_grad_norm), "0 or more", "use 0 to disable clipping")
            )
        if self.activation_checkpointing and not self.blocks:
            found = "no blocks to recompute"
            fix = "set blocks=(Block,), or omit activation_checkpointing"
            raise InputError(Problem("activation_checkpointing", found, "the classes of the model's blocks", fix))


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        names = ", ".join(str(each) for each in allowed if each is not None)
        raise InputError(Problem(name, repr(value), f"one of {names}", "use one of these"))


def reject_unsupported(strategy: str, settings: TrainingSettings, *names: str) -> None:
    """Raise InputError if one of the named settings, which a strategy does not support, is not at its default."""
    defaults = {field.name: field.default for field in fields(TrainingSettings)}
    for name in names:
        value = getattr(settings, name)
        if value != defaults[name]:
            found = f"{value}, with the strategy {strategy}"
            raise InputError(Problem(name, found, "a strategy that supports it", f"omit {name}"))
