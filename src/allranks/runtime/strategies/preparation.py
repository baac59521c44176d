"""What every strategy does to a model before it distributes it."""

from __future__ import annotations

import torch
from torch import nn

from allranks.errors import InputError, Problem
from allranks.runtime.settings import TrainingSettings
from allranks.runtime.strategies import batch_norm, recomputation
from allranks.runtime.strategies.precision import allow_tf32


def transform(model: nn.Module, settings: TrainingSettings, device: torch.device) -> tuple[nn.Module, list[nn.Module]]:
    """Apply activation checkpointing, compilation of the blocks, synchronized batch normalization and TF32.

    Return the model, which has the same parameters, and its blocks. Compiling a model without blocks is left to the
    strategy. Raise InputError if the model has no such blocks, or the device cannot do it.
    """
    blocks = recomputation.modules(model, settings.blocks)
    if settings.sync_batchnorm:
        model = batch_norm.synchronize(model, device)
    if settings.activation_checkpointing:
        recomputation.recompute(model, settings.blocks)
    if settings.compile:
        _check_compilable(blocks or [model])
        # One by one: blocks of a class are compiled once, which takes a fraction of the time of compiling a model of
        # many blocks, and the communication of one block overlaps with the computation of another.
        for block in blocks:
            block.compile()
    if settings.tf32:
        allow_tf32()
    return model, blocks


def _check_compilable(modules: list[nn.Module]) -> None:
    """Raise InputError for modules whose class is torch's own: Module.compile compiles the code of a forward method
    unless it is part of torch."""
    for module in modules:
        if type(module).__module__.startswith("torch."):
            raise InputError(
                Problem(
                    where="compile",
                    found=f"a {type(module).__qualname__}, which torch.nn.Module.compile leaves as it is",
                    expected="a model, or blocks, of a class of your own",
                    fix="set blocks to classes of your own, or leave compile out",
                )
            )
