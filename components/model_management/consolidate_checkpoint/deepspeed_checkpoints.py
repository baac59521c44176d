"""The weights in a checkpoint that DeepSpeed's engine wrote under ZeRO, put together by deepspeed.utils.zero_to_fp32.

DeepSpeed unpickles the files. `TORCH_FORCE_WEIGHTS_ONLY_LOAD` makes torch refuse classes other than the named ones, so
that no code in the files is executed.

Sources: deepspeed/utils/zero_to_fp32.py, https://docs.pytorch.org/docs/stable/notes/serialization.html
"""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from weights import Weight, Weights, bad_checkpoints

from allranks.runtime.checkpoints.reading import enum_member

_LATEST = "latest"
_PATTERN = "*_optim_states.pt"


def is_one(folder: Path) -> bool:
    """Return whether a folder is one to which DeepSpeed's save_checkpoint wrote, or one of the checkpoints in it."""
    return (folder / _LATEST).is_file() or any(folder.glob(_PATTERN)) or any(folder.glob(f"*/{_PATTERN}"))


def weights_of(folder: Path, step: int | None) -> Weights:
    """Return the weights in float32. Raise InputError if the files are damaged, or hold more than tensors.

    step: the checkpoint `global_step<step>`; None: the latest
    """
    if any(folder.glob(_PATTERN)):
        folder, tag = folder.parent, folder.name
    elif step is not None:
        tag = f"global_step{step}"
    else:
        latest = folder / _LATEST
        tag = latest.read_text(encoding="utf-8").strip() if latest.is_file() else ""
    if not tag or not any((folder / tag).glob(_PATTERN)):
        names = ", ".join(sorted({file.parent.name for file in folder.glob(f"*/{_PATTERN}")}))
        raise bad_checkpoints(f"no checkpoint {tag!r} of DeepSpeed's ZeRO", f"one of {names}", "give its step")
    state = _state(folder, tag)
    # What ZeRO 3 sharded is put together when it is read.
    return {name: Weight(tuple(value.shape), value.dtype, partial(_whole, value)) for name, value in state.items()}


def _whole(value: Any) -> Tensor:
    tensor: Tensor = value.contiguous().detach()
    return tensor


def _state(folder: Path, tag: str) -> dict[str, Any]:
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    allowed = [DynamicLossScaler, LossScaler, ZeroStageEnum, fragment_address, (enum_member, "builtins.getattr")]
    try:
        with torch.serialization.safe_globals(allowed):
            state: dict[str, Any] = get_fp32_state_dict_from_zero_checkpoint(str(folder), tag, lazy_mode=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, KeyError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise bad_checkpoints(
            f"{folder / tag}: {reason}", "undamaged files of ZeRO 1, 2 or 3, with only tensors", "use another step"
        ) from None
    return state
