"""Compare the weights in two folders, file by file and tensor by tensor. It is a program of its own, because it imports
torch: ``python -m allranks_lab.rehearsal.outputs FOLDER FOLDER`` prints the number of compared files and the first
difference as JSON.
"""

import contextlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WEIGHTS = re.compile(r"\.(pt|pth|bin|ckpt|safetensors|pt2|distcp|h5|keras|onnx|npz|npy)$")

_UNIQUE = re.compile(r"[0-9a-f]{8,}")
"""A part of a file's name that differs between two runs of the same code."""


def compare(first: Path, second: Path) -> tuple[int, str]:
    """Return how many files with weights are in both folders, and the first difference; "" if they are equal."""
    command = [sys.executable, "-m", "allranks_lab.rehearsal.outputs", str(first), str(second)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        files, differs = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return 0, f"it cannot be compared: {(ended.stderr.strip().splitlines() or ['no output'])[-1]}"
    return files, differs


def _compare(first: Path, second: Path) -> tuple[int, str]:
    names = [_files(folder) for folder in (first, second)]
    common = sorted({*names[0]} & {*names[1]})
    for name in common:
        if differs := _differs(names[0][name], names[1][name]):
            return len(common), f"{names[0][name].relative_to(first) if first.is_dir() else name}, {differs}"
    return len(common), ""


def _files(folder: Path) -> dict[str, Path]:
    """Return the files with weights by their names, without the part of the name that is unique."""
    if folder.is_file():
        return {folder.suffix: folder} if WEIGHTS.search(folder.name) else {}
    files = (path for path in sorted(folder.rglob("*")) if WEIGHTS.search(path.name) and path.is_file())
    return {_UNIQUE.sub("*", path.relative_to(folder).as_posix()): path for path in files}


def _differs(first: Path, second: Path) -> str:
    """Describe the difference of two files; "" if their weights are equal."""
    if first.read_bytes() == second.read_bytes():
        return ""
    try:
        tensors = [dict(_tensors(path)) for path in (first, second)]
    except Exception:  # of any library, for a file that is not in the format of its name
        return "the bytes"
    if tensors[0].keys() != tensors[1].keys():
        return f"tensor {sorted(tensors[0].keys() ^ tensors[1].keys())[0]}"
    return next((f"tensor {name}" for name, value in tensors[0].items() if value != tensors[1][name]), "")


def _tensors(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each tensor with floating-point numbers."""
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        found: Any = load_file(path)
    elif path.suffix == ".pt2":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if "/weights/" in name and not name.endswith(".json"):
                    yield name, archive.read(name)
        return
    elif path.suffix in (".npz", ".npy"):
        import numpy

        loaded = numpy.load(path)
        found = {"": loaded} if path.suffix == ".npy" else dict(loaded)
        found = {name: torch.from_numpy(array) for name, array in found.items()}
    elif path.suffix in (".pt", ".pth", ".bin", ".ckpt"):
        # The training of the same user wrote it a moment ago.
        found = torch.load(path, map_location="cpu", weights_only=False)
    elif path.suffix == ".distcp":
        found = dict(_rank_tensors(path))
    else:
        raise ValueError(path.suffix)
    for name, tensor in _leaves(found):
        if tensor.is_floating_point():
            with contextlib.suppress(RuntimeError):  # a tensor without data
                data = tensor.detach().contiguous().flatten().view(torch.uint8)
                yield name, f"{tensor.dtype} {tuple(tensor.shape)}".encode() + data.numpy().tobytes()


def _rank_tensors(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that one rank wrote by torch.distributed.checkpoint, each with its name."""
    from allranks.runtime.checkpoints.reading import Reader

    reader = Reader(path.parent)
    for index, place in reader.storage_data.items():
        described: Any = reader.metadata.state_dict_metadata[index.fqn]
        for chunk in getattr(described, "chunks", ()):
            if place.relative_path == path.name and chunk.offsets == index.offset:
                values = reader.region(index.fqn, described.properties.dtype, chunk.offsets, chunk.sizes)
                yield f"{index.fqn} from {tuple(chunk.offsets)}" if any(chunk.offsets) else index.fqn, values


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    import torch

    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}".lstrip("."))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{name}[{index}]")


if __name__ == "__main__":
    print(json.dumps(_compare(*map(Path, sys.argv[1:3]))))
