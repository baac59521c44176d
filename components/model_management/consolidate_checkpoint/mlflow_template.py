"""A copy of an MLflow model with other weights, for models whose weights are files by themselves:

- safetensors, as the transformers flavor and Hugging Face's libraries write them, in one file or several with an index
- a state dict that `torch.save` wrote (.pt, .pth, .bin)
- a program that `torch.export.save` wrote (.pt2)

No code of the model is executed.
"""

import os
import pickle
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from allranks.errors import InputError
from allranks_steps.messages import bad_input

Weights = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


def replace_weights(template: Path, output: Path, weights: Weights) -> list[Path]:
    """Copy an MLflow model and replace its weights. Return the files of weights, relative to the model.

    Raise InputError, and write nothing, if the folder is not an MLflow model, or has no weights or other ones.
    """
    if not (template / "MLmodel").is_file():
        raise _bad_model(f"{template} has no file MLmodel", "an MLflow model")
    renamed: dict[Path, dict[str, str]] = {}
    for path in sorted(template.rglob("*")):
        if path.suffix in _FORMATS and path.is_file() and (shapes := _FORMATS[path.suffix][0](path)):
            renamed[path] = _names(path.relative_to(template), shapes, weights)
    if not renamed:
        raise _bad_model("no file of weights in it", "safetensors, a state dict (.pt, .pth, .bin), or a program (.pt2)")
    _check_complete(renamed.values(), weights)
    # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
    shutil.copytree(template, output, dirs_exist_ok=True)
    for path, names in renamed.items():
        _FORMATS[path.suffix][1](output / path.relative_to(template), names, weights)
    return [path.relative_to(template) for path in renamed]


def _safetensors_shapes(path: Path) -> Shapes:
    with safe_open(path, framework="pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _state_dict_shapes(path: Path) -> Shapes:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, pickle.UnpicklingError, ValueError, EOFError):
        return {}  # not a state dict
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        return {}
    return {name: tuple(value.shape) for name, value in state.items()}


def _program_shapes(path: Path) -> Shapes:
    return {name: tuple(value.shape) for name, value in torch.export.load(path).state_dict.items()}


def _write_safetensors(path: Path, names: dict[str, str], weights: Weights) -> None:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {"format": "pt"}
        dtypes = {name: file.get_tensor(name).dtype for name in names}
    tensors = {name: weights[source].to(dtypes[name]).clone() for name, source in names.items()}
    _replace(path, lambda temporary: save_file(tensors, temporary, metadata=metadata))


def _write_state_dict(path: Path, names: dict[str, str], weights: Weights) -> None:
    state = torch.load(path, map_location="cpu", weights_only=True)
    for name, source in names.items():
        state[name] = weights[source].to(state[name].dtype)
    _replace(path, lambda temporary: torch.save(state, temporary))


def _write_program(path: Path, names: dict[str, str], weights: Weights) -> None:
    program = torch.export.load(path)
    with torch.no_grad():
        for name, source in names.items():
            program.state_dict[name].copy_(weights[source])
    _replace(path, lambda temporary: torch.export.save(program, temporary))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    temporary = path.with_name(f"new-{path.name}")  # the suffix decides the format
    write(temporary)
    os.replace(temporary, path)


_STATE_DICT = (_state_dict_shapes, _write_state_dict)
_FORMATS: dict[str, tuple[Callable[[Path], Shapes], Callable[[Path, dict[str, str], Weights], None]]] = {
    ".safetensors": (_safetensors_shapes, _write_safetensors),
    ".pt": _STATE_DICT,
    ".pth": _STATE_DICT,
    ".bin": _STATE_DICT,
    ".pt2": (_program_shapes, _write_program),
}
"""By suffix: what returns the shapes of a file's weights, and what replaces the weights."""


def _names(path: Path, shapes: Shapes, weights: Weights) -> dict[str, str]:
    """Return the checkpoint's name of each of a file's weights. One of the two may have a prefix before all names, such
    as "model." or "network.". Raise InputError if names or shapes differ."""
    names = _by_prefix(set(shapes), set(weights))
    if names is None:
        missing = sorted(set(shapes) - set(weights)) or sorted(set(weights) - set(shapes))
        raise _bad_model(f"{path} has other weights than the checkpoint, such as {missing[0]}", "the same network")
    for name, source in names.items():
        shape = tuple(weights[source].shape)
        if shapes[name] != shape:
            found = f"{path} has {name} of shape {shapes[name]}, and the checkpoint has {shape}"
            raise _bad_model(found, "the same network")
    return names


def _by_prefix(own: set[str], saved: set[str]) -> dict[str, str] | None:
    if own <= saved:
        return {name: name for name in own}
    first = min(own)
    prefixes = {name.removesuffix(first) for name in saved if name.endswith(f".{first}")}
    for prefix in sorted(prefixes):
        if {prefix + name for name in own} <= saved:
            return {name: prefix + name for name in own}
    prefixes = {first.removesuffix(name) for name in saved if first.endswith(f".{name}")}
    for prefix in sorted(prefixes):
        if all(name.startswith(prefix) and name.removeprefix(prefix) in saved for name in own):
            return {name: name.removeprefix(prefix) for name in own}
    return None


def _check_complete(renamed: Iterable[dict[str, str]], weights: Weights) -> None:
    """Raise InputError if the checkpoint has weights that no file has. A file may have one of several tied weights."""
    used = {source for names in renamed for source in names.values()}
    for name in sorted(weights.keys() - used):
        weight = weights[name]
        twins = (weights[other] for other in used if weights[other].shape == weight.shape)
        if not any(torch.equal(twin, weight) for twin in twins):
            raise _bad_model(f"it has no weights {name}, and the checkpoint has", "the same network")


def _bad_model(found: str, expected: str) -> InputError:
    fix = "give the model that the training wrote, or leave the input out"
    return bad_input("input model", found, expected, fix)
