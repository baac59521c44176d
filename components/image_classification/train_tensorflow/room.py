"""Disk space for the outputs of a training."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from replicas import Replicas

from allranks.runtime.output_room import outputs_of_training, require_room


def check_room(args: argparse.Namespace, model: Any, optimizer: Any, replicas: Replicas | None = None) -> None:
    """Raise InputError if the disks of the outputs have no room for them.

    replicas: all processes raise the same error, so that each must call it; None if one process writes and trains alone
    """
    weights = _size(model.variables)
    checkpoint = weights + _size(optimizer.variables)
    require_room(
        outputs_of_training(args.model, weights, args.checkpoints, checkpoint, args.save_total_limit), replicas
    )


def _size(variables: Any) -> int:
    """Return the bytes of variables. Those of Keras 2's optimizers are a method."""
    found = variables() if callable(variables) else variables
    return sum(int(np.prod(variable.shape)) * _bytes(variable.dtype) for variable in found)


def _bytes(dtype: Any) -> int:
    return int(getattr(dtype, "size", 0)) or np.dtype(str(dtype)).itemsize
