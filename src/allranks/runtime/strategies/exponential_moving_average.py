"""An exponential moving average of a model's weights."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.training import Training
from allranks.runtime.tensors import is_dtensor


class ExponentialMovingAverage:
    """An exponential moving average of the weights that a training updates.

        average = runtime.ExponentialMovingAverage(training, decay=0.9999)
        checkpoints = runtime.Checkpoints(folder, ranks, {"training": training, "average": average})
        ...
            if training.step():
                average.update()
        with average.averaged():
            evaluate(training.model)
        weights = average.weights()                             # to export them

    model:   the result of `strategy.prepare`, or a module without a strategy
    decay:   fraction of the average that an update keeps, from 0 to 1
    warm_up: use min(decay, (1 + n) / (10 + n)) in update n, from 0, so that the first weights are forgotten soon

    An update computes average = decay x average + (1 - decay) x weights with torch.optim.swa_utils. The average starts
    with the weights at the construction. It has the parameters that are trained, in float32 or the parameter's own
    precision if that is higher, and the floating-point buffers, such as BatchNorm's statistics. Of a model that FSDP
    shards, each rank has the average of its shards. An update does not communicate.

    Raise InputError for a decay out of range, and for ZeRO 3, whose weights belong to DeepSpeed between the steps.
    """

    def __init__(self, model: Training | nn.Module, decay: float = 0.999, *, warm_up: bool = False) -> None:
        if not 0 <= decay <= 1:
            raise InputError(Problem("decay", str(decay), "from 0 to 1", "use for example 0.999"))
        self._module: nn.Module = model if isinstance(model, nn.Module) else model.module
        if any(hasattr(parameter, "ds_id") for parameter in self._module.parameters()):
            found = "3, with an exponential moving average"
            expected = "weights that the ranks have between the steps"
            raise InputError(Problem("deepspeed_stage", found, expected, "use deepspeed_stage 2, or the strategy fsdp"))
        self._decay, self._warm_up = decay, warm_up
        self._updates = 0
        self._is_averaged = False
        self._tensors = _averaged_tensors(self._module)
        # In 16 bits, an average would not move: 1 - decay is less than a rounding.
        self._averages = {
            name: _local(tensor).to(torch.promote_types(tensor.dtype, torch.float32), copy=True)
            for name, tensor in self._tensors.items()
        }

    @torch.no_grad()
    def update(self) -> None:
        """Add the current weights to the average. Call it after each optimizer step."""
        if self._is_averaged:
            raise RuntimeError("update() within averaged(): the model has the average and not its weights")
        decay = min(self._decay, (1 + self._updates) / (10 + self._updates)) if self._warm_up else self._decay
        self._updates += 1
        groups: dict[tuple[torch.device, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
        for name, average in self._averages.items():
            averages, weights = groups.setdefault((average.device, average.dtype), ([], []))
            averages.append(average)
            weights.append(_local(self._tensors[name]).to(average.dtype))
        add: Any = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        for averages, weights in groups.values():
            add(averages, weights, self._updates)

    @contextmanager
    def averaged(self) -> Generator[None]:
        """Context manager in which the model has the averaged weights. Do not train within it."""
        weights = self._exchange()
        self._is_averaged = True
        try:
            yield
        finally:
            self._is_averaged = False
            self._restore(weights)

    @torch.no_grad()
    def weights(self) -> dict[str, Any]:
        """Return the full state dict of the unwrapped model with the averaged weights, on the CPU, on rank 0; {} on
        other ranks. A collective."""
        is_main = not distributed.is_initialized() or distributed.get_rank() == 0
        _reshard(self._module)
        names = {id(tensor): name for name, tensor in self._tensors.items()}
        weights = {}
        for name, value in self._module.state_dict(keep_vars=True).items():
            if id(value) in names:
                value = self._distributed(names[id(value)]).to(value.dtype)
            if isinstance(value, Tensor):
                full: Any = value
                full = full.full_tensor() if is_dtensor(full) else full
                value = full.detach().to("cpu", copy=True) if is_main else None
            weights[name] = value
        return weights if is_main else {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint. Averages of sharded parameters are DTensors, too."""
        return {"updates": self._updates, "averages": {name: self._distributed(name) for name in self._averages}}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load a state of full tensors, or of DTensors that are sharded as the parameters are. Raise ValueError if it
        is of another model."""
        saved = state["averages"]
        if saved.keys() != self._averages.keys():
            differing = ", ".join(sorted(saved.keys() ^ self._averages.keys())[:4])
            raise ValueError(f"the averages are of other parameters: {differing}")
        for name, value in saved.items():
            if value.shape != self._tensors[name].shape:
                found, expected = tuple(value.shape), tuple(self._tensors[name].shape)
                raise ValueError(f"size mismatch for {name}: {found}, not {expected}")
        for name, value in saved.items():
            self._averages[name].copy_(_own_shard(value, self._tensors[name]))
        self._updates = state["updates"]

    @torch.no_grad()
    def _exchange(self) -> list[tuple[Tensor, Tensor]]:
        """Copy the average into the model. Return each overwritten tensor with a copy of its former value."""
        _reshard(self._module)
        overwritten = []
        for name, average in self._averages.items():
            tensor = _local(self._tensors[name])
            overwritten.append((tensor, tensor.clone()))
            tensor.copy_(average)
            # DeepSpeed's float32 copy of this rank's part, from which a training's weights are exported.
            mapping = getattr(self._tensors[name], "_hp_mapping", None)
            if mapping is not None:
                part = mapping.lp_fragment_address
                overwritten.append((mapping.hp_fragment, mapping.hp_fragment.clone()))
                mapping.hp_fragment.copy_(average.flatten().narrow(0, part.start, part.numel))
        return overwritten

    @torch.no_grad()
    def _restore(self, overwritten: list[tuple[Tensor, Tensor]]) -> None:
        _reshard(self._module)
        for tensor, copy in overwritten:
            tensor.copy_(copy)

    def _distributed(self, name: str) -> Any:
        """Return an average as a DTensor if its parameter is one."""
        tensor: Any = self._tensors[name]
        average = self._averages[name]
        if not is_dtensor(tensor):
            return average
        return type(tensor.data).from_local(
            average, tensor.device_mesh, tensor.placements, run_check=False, shape=tensor.shape, stride=tensor.stride()
        )


def _averaged_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors to average by their names: trained parameters, and floating-point buffers that are saved."""
    saved = module.state_dict(keep_vars=True)
    parameters = {name: value for name, value in module.named_parameters() if value.requires_grad}
    buffers = {name: value for name, value in module.named_buffers() if value.is_floating_point() and name in saved}
    return {**parameters, **buffers}


def _local(tensor: Tensor) -> Tensor:
    """Return this rank's shard of a DTensor, and any other tensor itself."""
    local: Any = tensor.detach()
    shard: Tensor = local.to_local() if is_dtensor(local) else local
    return shard


def _own_shard(value: Tensor, like: Any) -> Tensor:
    if is_dtensor(value) or not is_dtensor(like):
        return _local(value)
    from torch.distributed.tensor import distribute_tensor  # takes long, and only sharded models need it

    on_device = value.to(like.to_local().device)
    return _local(distribute_tensor(on_device, like.device_mesh, like.placements, src_data_rank=None))


def _reshard(module: nn.Module) -> None:
    """Reshard parameters that FSDP gathered in a forward pass without a backward pass. Changes would not affect
    them."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp is not None:
        for part in module.modules():
            if isinstance(part, fsdp.FSDPModule):
                part.reshard()
