"""The state of a training as a checkpoint keeps it, and weights as a file does."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from allranks.errors import InputError, Problem


def pack(strategy: str, model: dict[str, Any], optimizer: dict[str, Any]) -> dict[str, Any]:
    """One state of the two, with the name of the strategy that made it."""
    return {"strategy": strategy, "model": model, "optimizer": optimizer}


def unpack(strategy: str, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model's and the optimizer's state. Raise InputError if another strategy made them."""
    if state["strategy"] != strategy:
        raise InputError(
            Problem(
                where="checkpoint",
                found=f"made by the strategy {state['strategy']}",
                expected=f"one of the strategy {strategy}: each keeps the optimizer's state in its own way",
                fix=f"go on with {state['strategy']}, or give a folder without its checkpoints",
            )
        )
    return state["model"], state["optimizer"]


def on_cpu(weights: dict[str, Any]) -> dict[str, Any]:
    """Copy of all tensors on the CPU, which further steps do not change."""
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in weights.items()
    }
