"""Read a folder of torch.distributed.checkpoint without executing code in it.

The file .metadata is a pickle, from which only classes that describe a checkpoint are unpickled.

Source: torch/distributed/checkpoint/filesystem.py and planner_helpers.py
"""

import enum
import io
import math
import pathlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Size, Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, ReadItem
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from allranks.runtime.checkpoints import state
from allranks.runtime.checkpoints.manifest import METADATA
from allranks.runtime.tensors import SavedTensor

_MODULES = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem")


def enum_member(kind: Any, name: str) -> Any:
    """Replace getattr, by which a pickle reads the members of an enum. Raise UnpicklingError for anything else."""
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        raise pickle.UnpicklingError(f"the attribute {name} of {kind!r}")
    return kind[name]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return enum_member
        if module in _MODULES or (module, name) in {("torch", "Size"), ("torch.serialization", "_get_layout")}:
            return super().find_class(module, name)
        if module in {"pathlib", "pathlib._local"} and name.endswith("Path"):
            return pathlib.PurePath
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which describes no checkpoint")


class Reader(FileSystemReader):
    """The values in a folder, which are read one by one.

    metadata: torch's description of them

    Raise OSError if the folder has no metadata, and UnpicklingError if they are damaged or hold something else.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.metadata = self.read_metadata()
        self.set_up_storage_reader(self.metadata, is_coordinator=True)

    def read_metadata(self, *_: Any, **__: Any) -> Metadata:
        """Return the metadata, without executing code in it."""
        with (Path(self.path) / METADATA).open("rb") as file:
            try:
                metadata = _Unpickler(file).load()
            except Exception as error:  # a damaged pickle may raise any, and so may one of another version of torch
                raise pickle.UnpicklingError(str(error).partition("\n")[0] or type(error).__name__) from error
        if not isinstance(metadata, Metadata):
            raise pickle.UnpicklingError("it is not the metadata of a checkpoint")
        return metadata

    def region(self, name: str, dtype: torch.dtype, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """Return a region of a tensor. Raise ValueError if a part of it is missing."""
        described = self.metadata.state_dict_metadata.get(name)
        chunk = ChunkStorageMetadata(Size(offsets), Size(sizes))
        items = []
        if isinstance(described, TensorStorageMetadata):
            items = create_read_items_for_chunk_list(name, described, [chunk])
        target = torch.empty(chunk.sizes, dtype=dtype)
        missing = target.numel() - sum(math.prod(item.lengths) for item in items)
        if missing:
            raise ValueError(f"{missing} of {target.numel()} values of {name} are not in the files")
        self.read_data(LoadPlan(items), _Target(target))  # type: ignore[arg-type]
        return target

    def saved(self, name: str, placeholder: Tensor) -> SavedTensor:
        """Return a tensor to read. placeholder: the meta tensor that stands for it in the structure"""
        described: Any = self.metadata.state_dict_metadata[name]
        return SavedTensor(described.size, placeholder.dtype, partial(self.region, name, placeholder.dtype))

    def parts(self) -> dict[str, Any]:
        """Return the states of a checkpoint's parts, by name, with a SavedTensor in place of each tensor."""
        found: dict[str, Any] = state.join(self.value(state.STRUCTURE), self.saved)
        return found

    def value(self, name: str) -> Any:
        """Return a value that is not a tensor."""
        place = self.storage_data[MetadataIndex(name)]
        with (Path(self.path) / place.relative_path).open("rb") as file:
            file.seek(place.offset)
            return state.decode(io.BytesIO(file.read(place.length)))


@dataclass(frozen=True)
class _Target:
    """The tensor into which a Reader reads, in the role of torch's planner."""

    tensor: Tensor

    def resolve_tensor(self, item: ReadItem) -> Tensor:
        return self.tensor[
            tuple(slice(low, low + size) for low, size in zip(item.dest_offsets, item.lengths, strict=True))
        ]

    def commit_tensor(self, item: ReadItem, tensor: Tensor) -> None:
        """Do nothing: the tensor has been read into its place."""
