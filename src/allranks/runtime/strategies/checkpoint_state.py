"""The state dict of a training in a checkpoint."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from allranks.errors import InputError, Problem
from allranks.runtime.tensors.tensor_shards import replicated


def pack(strategy: str, model: dict[str, Any], optimizer: dict[str, Any]) -> dict[str, Any]:
    """Return one state dict with both states and the strategy's name."""
    return {"strategy": strategy, "model": model, "optimizer": optimizer}


def unpack(strategy: str, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model's and the optimizer's state. Raise InputError if another strategy saved them."""
    if state["strategy"] != strategy:
        raise InputError(
            Problem(
                where="checkpoint",
                found=f"saved with the strategy {state['strategy']}",
                expected=f"a checkpoint of the strategy {strategy}: the format of the optimizer's state differs",
                fix=f"resume with {state['strategy']}, or use a folder without its checkpoints",
            )
        )
    return state["model"], state["optimizer"]


def replicated_model(model: nn.Module) -> dict[str, Any]:
    """Return the state dict of a model of which every rank has the same parameters, and saves a share.

    Buffers are rank 0's, from which DistributedDataParallel broadcasts them too."""
    state = model.state_dict()
    for name in dict(model.named_parameters(remove_duplicate=False)).keys() & state.keys():
        state[name] = replicated(state[name])
    return state


def replicated_optimizer(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state dict of an optimizer of which every rank has the same, and saves a share.

    Of an optimizer with another layout, such as one of DeepSpeed's for half precision, rank 0 saves all."""
    if "state" not in state:
        return state
    tensors = {
        parameter: {
            key: replicated(value) if isinstance(value, Tensor) and value.dim() else value
            for key, value in values.items()
        }
        for parameter, values in state["state"].items()
    }
    return {**state, "state": tensors}


def to_cpu(weights: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with all tensors on the CPU. Later training steps do not change it."""
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in weights.items()
    }
