"""Prepare a model for any strategy: precision, compilation, activation checkpointing, batch normalization."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, distributed, nn
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.settings import AUTO, TrainingSettings

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""The 16-bit types by the names that the settings have for them."""


def automatic_precision(device: torch.device) -> str:
    """Return the precision that "auto" stands for on a device.

    bfloat16 on GPUs that compute in it, float16 with a loss scale on older ones (V100, T4), float32 on the CPU.
    """
    if device.type != "cuda":
        return "float32"
    # torch emulates bfloat16 on older GPUs, slower than float32.
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def with_automatic_precision(settings: TrainingSettings, device: torch.device) -> TrainingSettings:
    """Return the settings with the precision that "auto" stands for on the device."""
    return replace(settings, precision=automatic_precision(device)) if settings.precision == AUTO else settings


class LowPrecision(nn.Module):
    """A model under autocast. Its outputs are float32, so that the loss is computed in full precision."""

    def __init__(self, model: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self._device_type = device.type
        self._dtype = dtype

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the model's outputs, with 16-bit tensors converted to float32."""
        with torch.autocast(self._device_type, dtype=self._dtype):
            outputs = self.model(*inputs, **options)
        return tree_map(_widened, outputs)


def with_precision(precision: str | None, model: nn.Module, device: torch.device) -> nn.Module:
    """Return the model under autocast if the precision is a 16-bit type, else the model itself."""
    return LowPrecision(model, device, DTYPES[precision]) if precision in DTYPES else model


def _widened(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.dtype in DTYPES.values() else value


def transform(model: nn.Module, settings: TrainingSettings, device: torch.device) -> tuple[nn.Module, list[nn.Module]]:
    """Apply activation checkpointing, compilation of the blocks, synchronized batch normalization and TF32.

    Return the model, which has the same parameters, and its blocks. The strategy compiles a model without blocks. Raise
    InputError if the model has no such blocks, or the device cannot do it.
    """
    if settings.sync_batchnorm:
        if device.type == "cpu":
            expected = "GPUs: torch.nn.SyncBatchNorm has no implementation for CPUs"
            raise InputError(Problem("sync_batchnorm", "the ranks train on CPUs", expected, "omit sync_batchnorm"))
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    blocks = [module for module in model.modules() if isinstance(module, settings.blocks)]
    if settings.blocks and not blocks:
        names = ", ".join(block.__qualname__ for block in settings.blocks)
        raise InputError(
            Problem("blocks", f"{type(model).__qualname__} has no {names}", "classes of modules inside the model")
        )
    if settings.activation_checkpointing:
        for block in blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if settings.compile:
        _check_compilable(blocks or [model])
        # One by one: blocks of a class are compiled once, which takes a fraction of the time of compiling a model of
        # many blocks, and the communication of one block overlaps with the computation of another.
        for block in blocks:
            block.compile()
    if settings.tf32:
        torch.set_float32_matmul_precision("high")  # in the whole process
    return model, blocks


def _check_compilable(modules: list[nn.Module]) -> None:
    """Raise InputError for modules of torch's own classes, whose forward methods Module.compile does not compile."""
    for module in modules:
        if type(module).__module__.startswith("torch."):
            found = f"a {type(module).__qualname__}, which torch.nn.Module.compile leaves as it is"
            fix = "set blocks to classes of your own, or omit compile"
            raise InputError(Problem("compile", found, "a model, or blocks, of a class of your own", fix))


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


def move_parameters(model: nn.Module, device: str, each: Callable[[nn.Parameter], None] = lambda _: None) -> None:
    """Replace parameters on other devices by empty tensors on a device. The parameters remain the same objects, because
    an optimizer may refer to them. each: called for each parameter"""
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
