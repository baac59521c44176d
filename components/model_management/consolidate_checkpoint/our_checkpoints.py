"""The weights in a checkpoint of `allranks.runtime`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weights import Weight, Weights, bad_checkpoints

from allranks.errors import InputError, Problem
from allranks.runtime.checkpoints import manifest, reading
from allranks.runtime.checkpoints.manifest import Entry
from allranks.runtime.tensors import SavedTensor

_MODES = {"lowest": "min", "highest": "max"}


def found_in(folder: Path) -> list[Entry]:
    """Return the checkpoints in a folder, or the one that the folder is, the newest first."""
    if description := manifest.read(folder):
        return [Entry(description.step, folder, description)]
    return manifest.entries(folder)


def select(entries: list[Entry], step: int | None, best: str) -> Entry:
    """Return the checkpoint of a step, the one with the best metric, or the newest one. Raise InputError if it is not
    there or not intact."""
    if step is not None:
        entries = [entry for entry in entries if entry.step == step]
        if not entries:
            raise InputError(Problem("input step", f"no checkpoint of step {step}", "the step of a checkpoint"))
    elif best in _MODES:
        measured = manifest.best(entries, _MODES[best])
        if measured is None:
            found = f"{best}, but no checkpoint has a metric"
            raise InputError(Problem("input best", found, "none", "pass metric= to save_if_due in the training"))
        entries = [measured]
    for entry in entries:
        if manifest.is_intact(entry):
            return entry
        print(f"{entry.path} is incomplete or damaged: skipped")
    names = ", ".join(entry.path.name for entry in entries)
    raise bad_checkpoints(
        f"incomplete or damaged: {names}", "a complete checkpoint", "train again, or use another step"
    )


def weights_of(entry: Entry, part: str | None) -> Weights:
    """Return the weights in a part of a checkpoint. Raise InputError if it has none, or several parts may be meant."""
    parts = reading.parts(reading.Reader(entry.path))
    models = {name: tensors for name, state in parts.items() if (tensors := _model(state))}
    trained = [name for name in models if "strategy" in parts[name]]
    names = [part] if part else trained or list(models)
    if len(names) != 1 or names[0] not in models:
        raise InputError(
            Problem(
                where="input part",
                found=f"{part or 'nothing'}, and the checkpoint has weights in {', '.join(models) or 'no part'}",
                expected="one part with the weights of a model",
                fix="name the part",
            )
        )
    return {
        name: Weight(tuple(saved.shape), saved.dtype, saved.full)
        for name, saved in models[names[0]].items()
        if isinstance(saved, SavedTensor)
    }


def _model(state: Any) -> dict[str, SavedTensor]:
    """Return the tensors of a model's state, by name; {} if it is another state."""
    if not isinstance(state, dict):
        return {}
    model = state["model"] if "strategy" in state else state
    if not isinstance(model, dict) or not all(isinstance(name, str) for name in model):
        return {}
    tensors = {name: value for name, value in model.items() if isinstance(value, SavedTensor)}
    # A model's state has tensors, and a module may add something else to it.
    return tensors if 2 * len(tensors) > len(model) else {}
