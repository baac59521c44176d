"""Build a model with values on rank 0 only. The other ranks build it on the meta device, whose tensors have a shape and
no values, and receive the values when the strategy has sharded it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from weakref import WeakSet

import torch
from torch import Tensor, distributed, nn

from allranks.errors import InputError, Problem

_created: WeakSet[nn.Module] = WeakSet()


def create(build: Callable[[], nn.Module]) -> nn.Module:
    """Return the model that `build` returns, on ranks other than 0 on the meta device.

    Raise InputError if `build` reads a value of a tensor there.
    """
    if distributed.get_rank() == 0:
        model = build()
    else:
        try:
            with torch.device("meta"), warnings.catch_warnings():
                # Of a state dict that the function loads.
                warnings.filterwarnings("ignore", message=".*copying from a non-meta parameter")
                model = build()
        except (NotImplementedError, RuntimeError) as error:
            if "meta" not in str(error):
                raise
            found = f"the function reads values of a tensor: {error}"
            expected = "a function that only creates and initializes tensors: on most ranks they have no values"
            fix = 'compute values that the code depends on with device="cpu", or call the function itself'
            raise InputError(Problem("strategy.create", found, expected, fix)) from error
    _created.add(model)
    return model


def is_created(model: nn.Module) -> bool:
    """Return whether `create` has returned a model.

    Raise InputError for another model on the meta device, whose values are unknown.
    """
    if model in _created:
        return True
    if any(parameter.is_meta for parameter in model.parameters()):
        found = "on the meta device: it has no values"
        expected = "a model with values, or one that strategy.create has built"
        raise InputError(Problem("model", found, expected, "use model = ranks.strategy.create(lambda: Model(...))"))
    return False


def move(model: nn.Module, device: str, each: Callable[[nn.Parameter], None] = lambda _: None) -> None:
    """Put empty tensors on a device in place of parameters on another one, which stay the same objects: an optimizer
    may have them. each: called for each parameter"""
    for parameter in list(model.parameters()):
        if parameter.device.type != device:
            empty = nn.Parameter(torch.empty_like(parameter, device=device), requires_grad=parameter.requires_grad)
            torch.utils.swap_tensors(parameter, empty)  # type: ignore[no-untyped-call]
        each(parameter)


def broadcast_buffers(model: nn.Module, device: torch.device) -> None:
    """Move the buffers to a device, with rank 0's values. A collective."""
    placed: dict[Tensor, Tensor] = {}  # a buffer that several modules share stays one tensor
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            if buffer not in placed:
                placed[buffer] = torch.empty_like(buffer, device=device) if buffer.is_meta else buffer.to(device)
                distributed.broadcast(placed[buffer], src=0)
            setattr(module, name, placed[buffer])
