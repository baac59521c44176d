"""The weights in a checkpoint that DeepSpeed's engine wrote under ZeRO, put together by deepspeed.utils.zero_to_fp32.

DeepSpeed unpickles the files. `TORCH_FORCE_WEIGHTS_ONLY_LOAD` makes torch refuse classes other than the named ones, so
that no code in the files is executed.

Sources: deepspeed/utils/zero_to_fp32.py, https://docs.pytorch.org/docs/stable/notes/serialization.html
"""

import os
import pickle
from pathlib import Path

import torch
from torch import Tensor

from allranks.runtime.checkpoints.reading import enum_member
from allranks_steps.messages import bad_input

_LATEST = "latest"
_PATTERN = "*_optim_states.pt"


def is_one(folder: Path) -> bool:
    """Return whether a folder is one to which DeepSpeed's save_checkpoint wrote, or one of the checkpoints in it."""
    return (folder / _LATEST).is_file() or any(folder.glob(_PATTERN)) or any(folder.glob(f"*/{_PATTERN}"))


def read(folder: Path, step: int | None) -> dict[str, Tensor]:
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
        found = f"no checkpoint {tag!r} of DeepSpeed's ZeRO"
        raise bad_input("input checkpoints", found, f"one of {names}", "give its step")
    # DeepSpeed takes seconds to import, and other checkpoints do not need it.
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
    from deepspeed.runtime.zero.config import ZeroStageEnum
    from deepspeed.utils.tensor_fragment import fragment_address
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    allowed = [DynamicLossScaler, LossScaler, ZeroStageEnum, fragment_address, (enum_member, "builtins.getattr")]
    try:
        with torch.serialization.safe_globals(allowed):
            state = get_fp32_state_dict_from_zero_checkpoint(str(folder), tag)
    except (pickle.UnpicklingError, RuntimeError, ValueError, KeyError, OSError) as error:
        found, expected = f"{folder / tag}: {str(error).partition(chr(10))[0]}", "undamaged files of ZeRO 1, 2 or 3"
        raise bad_input("input checkpoints", found, f"{expected}, with only tensors", "use another") from None
    return {name: value.detach() for name, value in state.items()}
