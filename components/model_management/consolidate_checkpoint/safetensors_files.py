"""Weights as safetensors files, in several above a size, with the index that Hugging Face's libraries read."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import split_state_dict_into_shards_factory
from safetensors.torch import save_file
from weights import Weights

from allranks_steps.json_files import write_json

NAME = "model{suffix}.safetensors"
INDEX = "model.safetensors.index.json"


def write(folder: Path, weights: Weights, max_shard_size: int) -> list[Path]:
    """Write the weights to a folder, and return the files. Not more than one file's weights are in memory.

    max_shard_size: bytes of a file at most, unless one tensor is larger
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("model*.safetensors"), folder / INDEX):
        old.unlink(missing_ok=True)  # of an earlier attempt, which may have had other files
    split = split_state_dict_into_shards_factory(
        weights, get_storage_size=lambda weight: weight.size, filename_pattern=NAME, max_shard_size=max_shard_size
    )
    files = []
    for name, keys in split.filename_to_tensors.items():
        tensors = {key: weights[key].read().contiguous() for key in keys}
        # Tied weights would share memory, which the format does not allow.
        save_file({key: tensor.clone() for key, tensor in tensors.items()}, folder / name, metadata={"format": "pt"})
        files.append(folder / name)
    if split.is_sharded:
        write_json(folder / INDEX, {"metadata": split.metadata, "weight_map": split.tensor_to_filename})
        files.append(folder / INDEX)
    return files
