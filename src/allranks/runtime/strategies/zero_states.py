"""The state of a training under DeepSpeed, as shards of the ranks that any number of ranks can load.

DeepSpeed's own checkpoints have one file per rank. Only the same number of ranks can load them, unless a program has
converted them to universal ones, and the training waits until they are written. Here, a shard is a range of one
flattened parameter: a rank saves its ranges of the weights and of the optimizer's tensors, and loads the ranges
that it needs.

Sources: deepspeed/utils/tensor_fragment.py (ZeRO 1 and 2: `_hp_mapping`, the range of a parameter in this rank's
partition), deepspeed/runtime/zero/stage3.py (ZeRO 3: each parameter is parted equally, padded at its end)
"""

from typing import Any

import deepspeed
import torch
from deepspeed import utils
from torch import Tensor, distributed, nn

from allranks.errors import InputError, Problem
from allranks.runtime.strategies import training
from allranks.runtime.tensors import SavedTensor, TensorShard, flat_range, full


def weights(model: nn.Module) -> dict[str, Any]:
    """Return the model's state dict in float32, on the CPU, on rank 0; {} on other ranks. A collective."""
    is_main = distributed.get_rank() == 0
    full_values: dict[int, Tensor] = {}
    state: dict[str, Any] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if isinstance(value, nn.Parameter):
            if id(value) not in full_values:
                whole = _full_value(value)
                full_values[id(value)] = whole.to("cpu", copy=True) if is_main else torch.empty(0)
            value = full_values[id(value)]
        elif isinstance(value, Tensor):
            value = value.detach().to("cpu", copy=True)
        state[name] = value
    return state if is_main else {}


def gather(engine: Any, model: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return this rank's shards of the model's weights in float32, and of the optimizer's state by parameter names:

    zero:    whether it is sharded
    tensors: values of the parameter's shape, by parameter and key (exp_avg, ...)
    scalars: other values, by parameter group and key (step, ...)
    groups:  settings of the parameter groups (lr, ...)
    loss_scale: the loss scaler's counters, which float16 needs
    """
    if not _sharded(engine):
        optimizer = training.replicated_optimizer(engine.optimizer.state_dict())
        return training.replicated_model(model), {"zero": False, "optimizer": optimizer}
    partitions = _partitions(engine)
    state = engine.optimizer.optimizer.state
    scalars = [
        {key: value for key, value in state[partition].items() if not _of_shape(value, partition)}
        for partition in partitions
        if partition in state
    ]
    keys = sorted({key for flat in partitions for key, value in state.get(flat, {}).items() if _of_shape(value, flat)})
    if keys and hasattr(engine.optimizer, "_lazy_init_hp_params_optimizer_state"):
        # DeepSpeed links the states after the step of the first parameter group, when the others have none yet.
        engine.optimizer._hp_optimizer_states_linked = False
        engine.optimizer._lazy_init_hp_params_optimizer_state()
    tensors = {
        name: {key: _own_shard(parameter, key) for key in keys}
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and keys
    }
    groups = [
        {key: value for key, value in group.items() if key != "params"}
        for group in engine.optimizer.optimizer.param_groups
    ]
    optimizer = {"zero": True, "tensors": tensors, "scalars": scalars[:1], "groups": groups}
    counters = vars(engine.optimizer.loss_scaler).items()
    loss_scale = {name: value for name, value in counters if isinstance(value, (bool, int, float))}
    return _weight_shards(model), optimizer | {"loss_scale": loss_scale}


def scatter(engine: Any, model: nn.Module, weights: dict[str, Any], optimizer: dict[str, Any]) -> None:
    """Load this rank's shards of the states that `gather` returned, with a SavedTensor in place of each tensor. A
    collective.

    Raise InputError if only one of the state's optimizer and the engine's optimizer is sharded. Raise
    ValueError if the model's parameters have other names or shapes.
    """
    if optimizer["zero"] != _sharded(engine):
        kinds = {True: "ZeRO 1, 2 or 3", False: "ZeRO 0"}
        found = f"saved with {kinds[optimizer['zero']]}"
        expected = f"a checkpoint of {kinds[not optimizer['zero']]}"
        raise InputError(Problem("checkpoint", found, expected, "resume with the stage that it was saved with"))
    _set_weights(model, weights)
    if not optimizer["zero"]:
        engine.optimizer.load_state_dict(full(optimizer["optimizer"]))
        return
    inner = engine.optimizer.optimizer
    for group, settings in zip(inner.param_groups, full(optimizer["groups"]), strict=True):
        group.update(settings)
    vars(engine.optimizer.loss_scaler).update(optimizer["loss_scale"])
    names = {key for tensors in optimizer["tensors"].values() for key in tensors}
    for partition in _partitions(engine):
        if optimizer["tensors"]:
            inner.state[partition] = full(optimizer["scalars"][0]) | {key: torch.zeros_like(partition) for key in names}
    if hasattr(engine.optimizer, "_lazy_init_hp_params_optimizer_state"):
        engine.optimizer._hp_optimizer_states_linked = False
        if optimizer["tensors"]:
            engine.optimizer._lazy_init_hp_params_optimizer_state()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        _load_own_range(parameter, weights[name], None)
        for key, value in optimizer["tensors"].get(name, {}).items():
            _load_own_range(parameter, value, key)


def _weight_shards(model: nn.Module) -> dict[str, Any]:
    trained: dict[int, TensorShard] = {}
    state: dict[str, Any] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if not isinstance(value, nn.Parameter):
            state[name] = value
            continue
        if id(value) not in trained:
            trained[id(value)] = _own_shard(value, None)
        state[name] = trained[id(value)]
    return state


def _own_shard(parameter: nn.Parameter, key: str | None) -> TensorShard:
    """Return this rank's range of a parameter's float32 weights, or of the optimizer's tensor `key`."""
    shape = tuple(getattr(parameter, "ds_shape", parameter.shape))
    start, values = _own_range(parameter, key)
    return flat_range(values, shape, start)


def _own_range(parameter: nn.Parameter, key: str | None) -> tuple[int, Tensor]:
    """Return the start of this rank's range in the flattened parameter, and the values, which are the optimizer's own.
    They are empty if the rank has no range."""
    if hasattr(parameter, "ds_id"):
        return _zero3_range(parameter, key)
    if parameter.requires_grad and hasattr(parameter, "_hp_mapping"):
        mapping: Any = parameter._hp_mapping
        if mapping is None:
            return 0, torch.empty(0, device=parameter.device)
        return mapping.lp_fragment_address.start, mapping.get_hp_fragment(key)
    # Not trained: every rank has the parameter.
    values = parameter.detach().float().flatten()
    return 0, values if distributed.get_rank() == 0 else values[:0]


def _zero3_range(parameter: Any, key: str | None) -> tuple[int, Tensor]:
    start, size = _zero3_bounds(parameter)
    if not parameter.requires_grad:
        values = parameter.ds_tensor.detach().float()
    elif not getattr(parameter._z3_optimizer, "swap_optimizer", False):
        # Not deepspeed.utils, which copies what is offloaded to the GPU.
        values, _ = parameter._z3_optimizer._get_fp32_opt_state_partition(
            parameter, release_swap_buffers=True, optim_state_key=key
        )
    elif key is None:
        values = utils.safe_get_local_fp32_param(parameter).cpu()
    else:
        values = utils.safe_get_local_optimizer_state(parameter, key).cpu()
    return start, values.flatten()[:size]


def _zero3_bounds(parameter: Any) -> tuple[int, int]:
    """Return the start of this rank's range in the flattened parameter, and the number of values without padding."""
    start = min(parameter.ds_tensor.numel() * distributed.get_rank(), parameter.ds_numel)
    return start, min(parameter.ds_tensor.numel(), parameter.ds_numel - start)


def _load_own_range(parameter: Any, value: SavedTensor, key: str | None) -> None:
    """Load this rank's range of a parameter's float32 weights, or of the optimizer's tensor `key`."""
    if hasattr(parameter, "ds_id"):
        start, size = _zero3_bounds(parameter)
        values = value.flat_range(start, size)
        padded = nn.functional.pad(values, (0, parameter.ds_tensor.numel() - size))
        if key is None:
            utils.safe_set_local_fp32_param(parameter, padded)
        else:
            utils.safe_set_local_optimizer_state(parameter, padded, key)
        return
    start, own = _own_range(parameter, key)
    if own.numel():
        own.data.copy_(value.flat_range(start, own.numel()))


def _set_weights(model: nn.Module, weights: dict[str, Any]) -> None:
    """Set the parameters, converted to their precision, and the buffers."""
    own = model.state_dict(keep_vars=True)
    if set(own) != set(weights):
        raise ValueError(f"other names of weights: {', '.join(sorted(set(own) ^ set(weights))[:8])}")
    for name, value in own.items():
        if isinstance(value, Tensor):
            saved: SavedTensor = weights[name]
            shape = tuple(getattr(value, "ds_shape", value.shape))
            if tuple(saved.shape) != shape:
                raise ValueError(f"size mismatch for {name}: {tuple(saved.shape)}, not {shape}")
            _set_weight(value, saved)


def _set_weight(value: Any, saved: SavedTensor) -> None:
    if hasattr(value, "ds_id"):
        start, size = _zero3_bounds(value)
        value.ds_tensor.data.flatten()[:size].copy_(saved.flat_range(start, size))
        if value.ds_status.name != "AVAILABLE":
            return
    # Every rank has all of it: also a small parameter under ZeRO 3, which remains gathered.
    value.data.copy_(saved.full())


def _full_value(parameter: nn.Parameter) -> Tensor:
    """Return the full parameter in float32. A collective."""
    whole: Tensor | None = utils.safe_get_full_fp32_param(parameter) if parameter.requires_grad else None
    if whole is not None:
        return whole.detach().reshape(getattr(parameter, "ds_shape", parameter.shape))
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
