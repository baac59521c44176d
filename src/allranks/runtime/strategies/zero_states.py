"""The full state of a training under DeepSpeed, which any number of ranks can load.

DeepSpeed's own checkpoints have one file per rank, and only the same number of ranks can load them. This module uses
deepspeed.utils to gather the weights, and the optimizer's tensors of the same shape, one parameter at a time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

from allranks.errors import InputError, Problem


def weights(model: nn.Module) -> dict[str, Any]:
    """Return the model's state dict in float32, on the CPU, on rank 0; {} on other ranks. A collective."""
    is_main = distributed.get_rank() == 0
    full_values: dict[int, Tensor] = {}
    state: dict[str, Any] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if isinstance(value, nn.Parameter):
            if id(value) not in full_values:
                full = _full_value(value)
                full_values[id(value)] = full.to("cpu", copy=True) if is_main else torch.empty(0)
            value = full_values[id(value)]
        elif isinstance(value, Tensor):
            value = value.detach().to("cpu", copy=True)
        state[name] = value
    return state if is_main else {}


def gather(engine: Any, model: nn.Module) -> dict[str, Any]:
    """Return the optimizer's state by parameter names. It is complete on rank 0. A collective.

    zero:    whether it is sharded
    tensors: values of the parameter's shape, by parameter and key (exp_avg, ...)
    scalars: other values, by parameter group and key (step, ...)
    groups:  settings of the parameter groups (lr, ...)
    """
    from deepspeed.utils import safe_get_full_optimizer_state

    if not _sharded(engine):
        return {"zero": False, "optimizer": engine.optimizer.state_dict()}
    is_main = distributed.get_rank() == 0
    partitions = _partitions(engine)
    state = engine.optimizer.optimizer.state
    scalars = [
        {key: value for key, value in state[partition].items() if not _of_shape(value, partition)}
        for partition in partitions
        if partition in state
    ]
    keys = sorted({key for flat in partitions for key, value in state.get(flat, {}).items() if _of_shape(value, flat)})
    tensors: dict[str, dict[str, Tensor]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and keys:
            gathered = {key: safe_get_full_optimizer_state(parameter, key) for key in keys}
            if is_main:
                tensors[name] = {key: value.to("cpu", copy=True) for key, value in gathered.items()}
    groups = [
        {key: value for key, value in group.items() if key != "params"}
        for group in engine.optimizer.optimizer.param_groups
    ]
    return {"zero": True, "tensors": tensors, "scalars": scalars[:1], "groups": groups}


def scatter(engine: Any, model: nn.Module, weights: dict[str, Any], optimizer: dict[str, Any]) -> None:
    """Load this rank's shard of the states that `weights` and `gather` returned. Every rank must pass the same states.
    A collective.

    Raise InputError if the state is of a sharded optimizer and the engine's is not, or the other way round.
    """
    if optimizer["zero"] != _sharded(engine):
        kinds = {True: "ZeRO 1, 2 or 3", False: "ZeRO 0"}
        raise InputError(
            Problem(
                where="checkpoint",
                found=f"saved with {kinds[optimizer['zero']]}",
                expected=f"a checkpoint of {kinds[not optimizer['zero']]}",
                fix="resume with the stage that it was saved with",
            )
        )
    _set_weights(model, weights)
    if not optimizer["zero"]:
        engine.optimizer.load_state_dict(optimizer["optimizer"])
        return
    inner = engine.optimizer.optimizer
    for group, settings in zip(inner.param_groups, optimizer["groups"], strict=True):
        group.update(settings)
    names = {key for tensors in optimizer["tensors"].values() for key in tensors}
    for partition in _partitions(engine):
        if optimizer["tensors"]:
            scalars = {key: _copy(value) for key, value in optimizer["scalars"][0].items()}
            inner.state[partition] = scalars | {key: torch.zeros_like(partition) for key in names}
    if hasattr(engine.optimizer, "_lazy_init_hp_params_optimizer_state"):
        engine.optimizer._hp_optimizer_states_linked = False
        if optimizer["tensors"]:
            engine.optimizer._lazy_init_hp_params_optimizer_state()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        _set_full_value(parameter, weights[name], None)
        for key, value in optimizer["tensors"].get(name, {}).items():
            _set_full_value(parameter, value, key)


def _set_full_value(parameter: nn.Parameter, value: Tensor, key: str | None) -> None:
    """Set this rank's shard of a parameter's float32 weights, or of the optimizer's tensor `key`."""
    from deepspeed import utils

    value = value.to(parameter.device)
    if not hasattr(parameter, "ds_id"):
        if key is None:
            utils.safe_set_full_fp32_param(parameter, value)
        else:
            utils.safe_set_full_optimizer_state(parameter, value, key)
        return
    # ZeRO 3's shards are equal and padded with zeros. DeepSpeed's setter for full values does not pad.
    world_size = distributed.get_world_size()
    size = -(-value.numel() // world_size)
    padded = nn.functional.pad(value.flatten(), (0, size * world_size - value.numel()))
    part = padded.narrow(0, size * distributed.get_rank(), size)
    if key is None:
        utils.safe_set_local_fp32_param(parameter, part)
    else:
        utils.safe_set_local_optimizer_state(parameter, part, key)


def _set_weights(model: nn.Module, weights: dict[str, Any]) -> None:
    sharded = [parameter for parameter in model.parameters() if hasattr(parameter, "ds_id")]
    if not sharded:
        model.load_state_dict(weights)
        return
    import deepspeed

    for name, value in model.state_dict(keep_vars=True).items():
        if isinstance(value, nn.Parameter):
            with deepspeed.zero.GatheredParameters([value], modifier_rank=0), torch.no_grad():
                if distributed.get_rank() == 0:
                    value.copy_(weights[name])
        elif isinstance(value, Tensor):
            value.copy_(weights[name])


def _full_value(parameter: nn.Parameter) -> Tensor:
    """Return the full parameter in float32. A collective."""
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param

    full: Tensor | None = safe_get_full_fp32_param(parameter) if parameter.requires_grad else None
    if full is not None:
        return full.detach().reshape(getattr(parameter, "ds_shape", parameter.shape))
    if not hasattr(parameter, "ds_id"):
        return parameter.detach().float()
    with deepspeed.zero.GatheredParameters([parameter]):
        return parameter.detach().float().clone()


def _sharded(engine: Any) -> bool:
    return bool(engine.zero_optimization_stage())


def _partitions(engine: Any) -> list[Tensor]:
    """Return this rank's flat shards of the float32 weights. They are the keys of the optimizer's state."""
    optimizer = engine.optimizer
    if engine.zero_optimization_stage() == 3:
        return list(optimizer.fp32_partitioned_groups_flat)
    return list(optimizer.single_partition_of_fp32_groups)


def _of_shape(value: object, partition: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == partition.shape


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
