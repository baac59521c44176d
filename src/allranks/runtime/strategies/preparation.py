"""What every strategy does to a model before it distributes it."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.precision import allow_tf32
from allranks.runtime.strategies.settings import TrainingSettings


def transform(model: nn.Module, settings: TrainingSettings, device: torch.device) -> tuple[nn.Module, list[nn.Module]]:
    """Apply activation checkpointing, compilation of the blocks, synchronized batch normalization and TF32.

    Return the model, which has the same parameters, and its blocks. Compiling a model without blocks is left to the
    strategy. Raise InputError if the model has no such blocks, or the device cannot do it.
    """
    blocks = _blocks_of(model, settings.blocks)
    if settings.sync_batchnorm:
        model = _synchronize(model, device)
    if settings.activation_checkpointing:
        _recompute(model, settings.blocks)
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


def _synchronize(model: nn.Module, device: torch.device) -> nn.Module:
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


def _recompute(model: nn.Module, blocks: tuple[type[nn.Module], ...]) -> None:
    """Enable activation checkpointing for the model's modules of these classes.

    Parameter names do not change. Raise InputError if the model has no such module.
    """
    for block in _blocks_of(model, blocks):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def _blocks_of(model: nn.Module, blocks: tuple[type[nn.Module], ...]) -> list[nn.Module]:
    """Return the model's modules of these classes. Raise InputError if `blocks` is not empty and there is none."""
    found = [module for module in model.modules() if isinstance(module, blocks)]
    if blocks and not found:
        names = ", ".join(block.__qualname__ for block in blocks)
        raise InputError(
            Problem("blocks", f"{type(model).__qualname__} has no {names}", "classes of modules inside the model")
        )
    return found
