"""torch's fully_shard (FSDP2): each rank has a shard of every parameter, gradient and optimizer state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed, nn, optim
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import _get_default_group
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.utils import _sync_module_states
from torch.nn.modules.batchnorm import _BatchNorm

from allranks.errors import InputError, Problem
from allranks.runtime.strategies import preparation, training
from allranks.runtime.strategies.preparation import DTYPES, transform, with_automatic_precision, with_precision
from allranks.runtime.strategies.settings import TrainingSettings
from allranks.runtime.strategies.torch_training import TorchTraining
from allranks.runtime.strategies.training import Schedule, Strategy
from allranks.runtime.tensors import SavedTensor, full

_FULL_STATE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_FROM_RANK_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
_BROADCAST_BYTES = 250 << 20
"""Bytes of one broadcast of the weights, as in DistributedDataParallel."""
_IN_FLOAT32 = {"cuda": (_BatchNorm,), "cpu": (_BatchNorm, nn.LayerNorm, nn.GroupNorm)}
"""Modules by type of device whose parameters stay in float32. Batch normalization has running statistics in float32,
and refuses parameters of another type. The others refuse 16-bit parameters for a float32 input, which autocast casts on
GPUs only. Not instance normalization: it returns a view, of which an operation in place would drop fully_shard's
hook."""


class Fsdp(Strategy):
    """fully_shard over all ranks: block by block if the settings name blocks, otherwise the model as one unit."""

    name = "fsdp"
    unsupported = ("find_unused_parameters", "deepspeed_stage", "deepspeed_config")

    def create(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Return the model that `build` returns, with values on rank 0 only, until `prepare`."""
        return preparation.create(build)

    def _distribute(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings, schedule: Schedule | None
    ) -> FsdpTraining:
        """Broadcast rank 0's weights, and shard the model and the optimizer's parameters. A collective."""
        settings = with_automatic_precision(settings, self.device)
        mesh = _mesh(settings.shard_group_size, self.device)
        is_created = preparation.is_created(model)
        model, blocks = transform(model, settings, self.device)
        values = model.state_dict() if is_created else {}
        if is_created:
            preparation.move_parameters(model, "meta")
        else:
            model = model.to(self.device)
            _sync_module_states(model, _get_default_group(), _BROADCAST_BYTES, 0, ())
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        low = DTYPES.get(settings.precision or "float32")
        # On the CPU, offloading has no effect.
        offload = CPUOffloadPolicy() if settings.offload and self.device.type != "cpu" else OffloadPolicy()
        for module, precision in _units(model, blocks, low, self.device):
            fully_shard(module, mesh=mesh, mp_policy=precision, offload_policy=offload)
        if is_created:
            _fill(model, values, self.device, settings.offload)
        if settings.compile and not blocks:
            model.compile()
        sharded = dict(model.named_parameters())
        for group in optimizer.param_groups:
            group["params"] = [sharded[names[id(parameter)]] for parameter in group["params"]]
        wrapped = with_precision(settings.precision, model, self.device)
        return FsdpTraining(wrapped, model, optimizer, settings, schedule, self.device)


def _units(
    model: nn.Module, blocks: list[nn.Module], low: torch.dtype | None, device: torch.device
) -> list[tuple[nn.Module, MixedPrecisionPolicy]]:
    """Return the modules to shard one by one, and the precision of each. Inner modules precede outer ones, which get
    the remaining parameters.

    low: the 16-bit type to compute in
    """
    # Autocast casts the inputs of each operation, and those of a module must not be rounded before: it may subtract,
    # or take differences of times.
    precision = MixedPrecisionPolicy(low, torch.float32 if low else None, cast_forward_inputs=False)
    units = dict.fromkeys((*blocks, model), precision)
    if low is not None:
        for module in model.modules():
            if isinstance(module, _IN_FLOAT32[device.type]) and next(module.parameters(), None) is not None:
                units[module] = MixedPrecisionPolicy(cast_forward_inputs=False)
    return sorted(units.items(), key=lambda unit: sum(1 for _ in unit[0].modules()))


def _mesh(shard_group_size: int | None, device: torch.device) -> DeviceMesh:
    """Return the mesh of all ranks, or of groups that hold replicas. Raise InputError if the ranks do not divide."""
    ranks = distributed.get_world_size()
    size = shard_group_size or ranks
    if ranks % size:
        fix = "use the number of ranks of an instance, or omit shard_group_size"
        raise InputError(Problem("shard_group_size", f"{size}, on {ranks} ranks", f"a divisor of {ranks}", fix))
    if size == ranks:
        return init_device_mesh(device.type, (ranks,))
    mesh = torch.arange(ranks).reshape(-1, size)
    # init_device_mesh would give these groups torch's default time-out.
    timeout = _get_default_group()._get_backend(device).options._timeout
    shard, replicate = (
        distributed.new_subgroups_by_enumeration(groups.tolist(), timeout=timeout)[0]  # type: ignore[no-untyped-call]
        for groups in (mesh, mesh.T)
    )
    return DeviceMesh.from_group([replicate, shard], device.type, mesh=mesh, mesh_dim_names=("replicate", "shard"))


def _fill(model: nn.Module, values: dict[str, Any], device: torch.device, offload: bool) -> None:
    """Load the values of a sharded model on the meta device. A collective.

    values:  the state dict of the whole model on rank 0; ignored on other ranks
    offload: leave the parameters on the CPU. Buffers are not offloaded
    """
    preparation.broadcast_buffers(model, device)
    buffers = [
        (module, name, buffer)
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False)
    ]
    model.to_empty(device="cpu" if offload else device)
    set_model_state_dict(model, values, options=_FROM_RANK_0)
    for module, name, buffer in buffers:
        setattr(module, name, buffer)


class FsdpTraining(TorchTraining):
    """A training under fully_shard; see `Training`."""

    reads_saved_tensors = True

    def weights(self) -> dict[str, Any]:
        return training.to_cpu(get_model_state_dict(self.module, options=_FULL_STATE))

    def state_dict(self) -> dict[str, Any]:
        state = training.pack("fsdp", *_gather(self.module, self.optimizer))
        return state | self._progress()

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        _scatter(self.module, self.optimizer, *training.unpack("fsdp", state))
        self._load_progress(state)

    def _set_gradient_sync(self, enabled: bool) -> None:
        assert isinstance(self.module, FSDPModule)
        self.module.set_requires_gradient_sync(enabled)

    def _drop_gradients(self) -> None:
        super()._drop_gradients()
        # Gradients that have not been reduced yet belong to the unsharded parameters.
        for module in self.module.modules():
            if not isinstance(module, FSDPModule):
                continue
            for group in module._get_fsdp_state()._fsdp_param_groups:
                for parameter in group.fsdp_params:
                    parameter.unsharded_accumulated_grad = None
                    if hasattr(parameter, "_unsharded_param"):  # from the first forward pass on
                        parameter._unsharded_param.grad = None

    def _clip(self, max_norm: float) -> Tensor:
        parameters = list(self.module.parameters())
        norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
        if isinstance(norm, DTensor):
            norm = norm.full_tensor()  # one all-reduce, which clipping by a sharded norm would do as well
        nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
        return norm


def _gather(model: nn.Module, optimizer: optim.Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and its optimizer, by the parameters' names, as DTensors."""
    if not optimizer.state:
        # torch's function would step the optimizer, with a learning rate of 0: Adam's count of steps would be 1.
        return get_model_state_dict(model), _without_tensors(model, optimizer)
    return get_model_state_dict(model), get_optimizer_state_dict(model, optimizer)


def _without_tensors(model: nn.Module, optimizer: optim.Optimizer) -> dict[str, Any]:
    """Return the state of an optimizer that has not taken a step, as torch's get_optimizer_state_dict names it."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    state = optimizer.state_dict()
    groups = [
        {**group, "params": [names[id(parameter)] for parameter in own["params"]]}
        for group, own in zip(state["param_groups"], optimizer.param_groups, strict=True)
    ]
    return {**state, "param_groups": groups}


def _scatter(model: nn.Module, optimizer: optim.Optimizer, weights: dict[str, Any], state: dict[str, Any]) -> None:
    """Load this rank's shards of the states of a model and its optimizer. A collective.

    weights, state: as `_gather` returns them, with a SavedTensor in place of each tensor

    Raise ValueError if the model's parameters have other shapes.
    """
    own: dict[str, Any] = get_model_state_dict(model)
    for name, value in weights.items():
        if name in own and isinstance(value, SavedTensor) and value.shape != own[name].shape:
            raise ValueError(f"size mismatch for {name}: {tuple(value.shape)}, not {tuple(own[name].shape)}")
    set_model_state_dict(model, {name: _shard(value, own.get(name)) for name, value in weights.items()})
    tensors: Any = {
        name: {key: _shard(value, own.get(name)) for key, value in values.items()}
        for name, values in state["state"].items()
    }
    set_optimizer_state_dict(model, optimizer, {**full(state | {"state": {}}), "state": tensors})


def _shard(value: Any, like: Any) -> Any:
    """Return this rank's shard of a saved tensor if it has the shape of a DTensor, else the whole tensor."""
    if not isinstance(value, SavedTensor):
        return value
    if not isinstance(like, DTensor) or value.shape != like.shape:
        return value.full()
    local: Any = like.to_local()
    (chunk,) = like.__create_chunk_list__()  # type: ignore[no-untyped-call]
    values = value.region(chunk.offsets, chunk.sizes).reshape(local.shape).to(local.device)
    return DTensor.from_local(
        values, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )
