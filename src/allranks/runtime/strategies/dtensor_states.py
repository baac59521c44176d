"""The state of a model and its optimizer whose parameters are DTensors, in the shards that the ranks have."""

from __future__ import annotations

from typing import Any

from torch import nn, optim
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.tensor import DTensor

from allranks.runtime.saved_tensors import SavedTensor, full


def gather(model: nn.Module, optimizer: optim.Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
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


def scatter(model: nn.Module, optimizer: optim.Optimizer, weights: dict[str, Any], state: dict[str, Any]) -> None:
    """Load this rank's shards of the states of a model and its optimizer. A collective.

    weights, state: what `gather` returned, with a SavedTensor in place of each tensor

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
