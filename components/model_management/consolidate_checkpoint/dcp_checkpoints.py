"""The weights in a checkpoint that a script saved with torch.distributed.checkpoint.

torch's own converter, dcp_to_torch_save, is not used: it holds the whole checkpoint in memory, also the optimizer's
state, and executes what the pickles call. Here, no code in them is executed, and tensors are read one by one.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path

from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from weights import Weight, Weights, bad_checkpoints

from allranks.errors import InputError, Problem
from allranks.runtime.checkpoints.manifest import METADATA
from allranks.runtime.checkpoints.reading import Reader

_MODEL = "model"


def is_one(folder: Path) -> bool:
    """Return whether a folder is such a checkpoint, or has some in it."""
    return bool(_checkpoints(folder))


def select(folder: Path, step: int | None) -> Path:
    """Return the folder of a step's checkpoint, or of the one whose name has the highest number.

    The step is the last number in a folder's name, as in step-300 and checkpoint_300. Raise InputError if there is no
    checkpoint of the step.
    """
    found = _checkpoints(folder)
    if step is not None:
        found = [path for path in found if _step(path) == step]
        if not found:
            raise InputError(Problem("input step", f"no checkpoint of step {step}", "the step of a checkpoint"))
    return max(found, key=lambda path: (_step(path), path.name))


def weights_of(folder: Path, part: str | None) -> Weights:
    """Return the weights in a part of a checkpoint.

    part: the keys of the saved state dict that lead to the model's, joined by dots, such as app.model. None: those of
          the only state dict called model, or the whole if it has only tensors.

    Raise InputError if the files are damaged, hold something else, or have no such part.
    """
    try:
        reader = Reader(folder)
    except (pickle.UnpicklingError, OSError, EOFError, AttributeError, ValueError, IndexError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise bad_checkpoints(
            f"{folder / METADATA}: {reason}", "an undamaged checkpoint of torch", "use another"
        ) from None
    keys = _keys(reader.metadata)
    prefix = _part(keys, reader.metadata, part)
    return {
        ".".join(path[len(prefix) :]): _weight(reader, name)
        for name, path in keys.items()
        if path[: len(prefix)] == prefix
    }


def _checkpoints(folder: Path) -> list[Path]:
    if (folder / METADATA).is_file():
        return [folder]
    return [file.parent for file in folder.glob(f"*/{METADATA}")]


def _step(path: Path) -> int:
    numbers = re.findall(r"\d+", path.name)
    return int(numbers[-1]) if numbers else -1


def _keys(metadata: Metadata) -> dict[str, tuple[str, ...]]:
    """Return the keys that lead to each tensor, by the tensor's name."""
    paths = metadata.planner_data or {}
    return {
        name: tuple(map(str, paths.get(name, (name,))))
        for name, value in metadata.state_dict_metadata.items()
        if isinstance(value, TensorStorageMetadata)
    }


def _part(keys: dict[str, tuple[str, ...]], metadata: Metadata, part: str | None) -> tuple[str, ...]:
    if part is not None:
        named = tuple(part.split("."))
        if any(path[: len(named)] == named for path in keys.values()):
            return named
    elif models := {path[: path.index(_MODEL) + 1] for path in keys.values() if _MODEL in path[:-1]}:
        if len(models) == 1:
            return models.pop()
    elif keys and len(keys) == len(metadata.state_dict_metadata):
        return ()
    parts = sorted({".".join(path[:-1]) for path in keys.values()} - {""})
    raise InputError(
        Problem(
            where="input part",
            found=f"{part or 'nothing'}, and the checkpoint has tensors in {', '.join(parts[:8]) or 'no part'}",
            expected="one part with the weights of a model",
            fix="name the part",
        )
    )


def _weight(reader: Reader, name: str) -> Weight:
    described = reader.metadata.state_dict_metadata[name]
    assert isinstance(described, TensorStorageMetadata)
    saved = reader.saved(name, described.properties.dtype)
    return Weight(tuple(saved.shape), saved.dtype, saved.full)
