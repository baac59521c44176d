"""The weights in a checkpoint of torch.distributed.checkpoint, which this project's trainings save too.

They are loaded as torch's converter dcp_to_torch_save does it, but without the rest of the checkpoint, such as the
optimizer's state, and without executing code in the files.

Source: torch/distributed/checkpoint/format_utils.py
"""

import pickle
import re
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

from allranks.runtime.checkpoints import manifest
from allranks.runtime.checkpoints.manifest import METADATA, Entry
from allranks.runtime.checkpoints.reading import Reader
from allranks_steps.messages import bad_input

_MODEL = "model"
_MODES = {"lowest": "min", "highest": "max"}


def entries(folder: Path) -> list[Entry]:
    """Return the checkpoints of this project in a folder, or the one that the folder is, the newest first."""
    if description := manifest.read(folder):
        return [Entry(description.step, folder, description)]
    return manifest.entries(folder)


def select(folder: Path, step: int | None, best: str) -> Path:
    """Return the folder of a step's checkpoint, of the one with the best metric, or of the newest one.

    Without a manifest, the step is the last number in a folder's name, as in step-300 and checkpoint_300. Raise
    InputError if there is no such checkpoint, or it is not intact.
    """
    own = entries(folder)
    others = [folder] if (folder / METADATA).is_file() else [file.parent for file in folder.glob(f"*/{METADATA}")]
    found = own or [Entry(_step(path), path, None) for path in others]
    if not found:
        raise bad_input(
            "input checkpoints",
            f"no checkpoint in {folder}",
            "the checkpoints of a training, or of DeepSpeed or torch.distributed.checkpoint",
            "give the output `checkpoints` of a training",
        )
    if step is not None:
        found = [entry for entry in found if entry.step == step]
        if not found:
            raise bad_input("input step", f"no checkpoint of step {step}", "the step of a checkpoint")
    elif best in _MODES:
        measured = manifest.best(found, _MODES[best])
        if measured is None:
            missing = f"{best}, but no checkpoint has a metric"
            raise bad_input("input best", missing, "none", "pass metric= to save_if_due in the training")
        found = [measured]
    if not own:
        return max(found, key=lambda entry: (entry.step, entry.path.name)).path
    for entry in found:
        if manifest.is_intact(entry):
            return entry.path
        print(f"{entry.path} is incomplete or damaged: skipped")
    names = ", ".join(entry.path.name for entry in found)
    expected, fix = "a complete checkpoint", "train again, or use another step"
    raise bad_input("input checkpoints", f"incomplete or damaged: {names}", expected, fix)


def read(folder: Path, part: str | None) -> dict[str, Tensor]:
    """Return the weights in a part of a checkpoint.

    part: the keys of the saved state dict that lead to the model's, joined by dots, such as app.model. None: those of
          the only state dict called model, or of the only one that has tensors.

    Raise InputError if the files are damaged, hold something else, or have no such part.
    """
    try:
        reader = Reader(folder)
    except (pickle.UnpicklingError, OSError) as error:
        found = f"{folder / METADATA}: {error}"
        expected = "an undamaged checkpoint of torch"
        raise bad_input("input checkpoints", found, expected, "use another") from None
    keys = reader.metadata.planner_data or {}
    paths = {
        name: tuple(map(str, keys.get(name, (name,))))
        for name, value in reader.metadata.state_dict_metadata.items()
        if isinstance(value, TensorStorageMetadata)
    }
    prefix = _prefix(set(paths.values()), part)
    chosen = {name: ".".join(path[len(prefix) :]) for name, path in paths.items() if path[: len(prefix)] == prefix}
    state: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner(keys=set(chosen) if keys else None)  # type: ignore[no-untyped-call]
    _load_state_dict(state, storage_reader=reader, planner=planner, no_dist=True)
    flat, _ = flatten_state_dict(state)
    return {chosen[name]: flat[name] for name in chosen}


def _step(path: Path) -> int:
    numbers = re.findall(r"\d+", path.name)
    return int(numbers[-1]) if numbers else -1


def _prefix(paths: set[tuple[str, ...]], part: str | None) -> tuple[str, ...]:
    """Return the keys that lead to the state dict with the weights. paths: the keys that lead to each tensor"""
    if part is not None:
        named = tuple(part.split("."))
        parents = {path[: len(prefix)] for prefix in (named, (*named, _MODEL)) for path in paths}
        found = [prefix for prefix in ((*named, _MODEL), named) if prefix in parents][:1]
    else:
        models = [path for path in paths if _MODEL in path[:-1] and "optimizer" not in path]
        found = list({path[: path.index(_MODEL) + 1] for path in models} or {path[:-1] for path in paths})
    if len(found) == 1:
        return found[0]
    names = sorted({".".join(path[:-1]) for path in paths} - {""})
    present = f"the checkpoint has tensors in {', '.join(names[:8]) or 'no part'}"
    expected = "one part with the weights of a model"
    raise bad_input("input part", f"{part or 'nothing'}, and {present}", expected, "name the part")
