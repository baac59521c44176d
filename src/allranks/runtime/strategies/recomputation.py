"""Activation checkpointing, which trades computing time for memory."""

from __future__ import annotations

from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from allranks.errors import InputError, Problem


def recompute(model: nn.Module, blocks: tuple[type[nn.Module], ...]) -> None:
    """Enable activation checkpointing for the model's modules of these classes.

    Parameter names do not change. Raise InputError if the model has no such module.
    """
    for block in modules(model, blocks):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def modules(model: nn.Module, blocks: tuple[type[nn.Module], ...]) -> list[nn.Module]:
    """Return the model's modules of these classes. Raise InputError if `blocks` is not empty and there is none."""
    found = [module for module in model.modules() if isinstance(module, blocks)]
    if blocks and not found:
        names = ", ".join(block.__qualname__ for block in blocks)
        raise InputError(
            Problem("blocks", f"{type(model).__qualname__} has no {names}", "classes of modules inside the model")
        )
    return found
