"""Weights in two folders are compared tensor by tensor."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict_saver import save

from allranks_lab.rehearsal import outputs

pytestmark = pytest.mark.slow  # torch's checkpoints take seconds to import


def safetensors(path: Path, value: float) -> None:
    save_file({"weight": torch.full((2,), value), "steps": torch.tensor(int(path.parent.name == "b"))}, path)


def checkpoint(path: Path, value: float) -> None:
    torch.save({"model": {"weight": torch.full((2,), value)}, "written by": path.parent.name}, path)


def distributed(path: Path, value: float) -> None:
    state = {"model": {"weight": torch.full((2,), value), "steps": torch.tensor(1)}, "written by": path.parent.name}
    save(state, checkpoint_id=path.parent, no_dist=True)


def exported(path: Path, value: float) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data/weights/weight_0", str(value))
        archive.writestr("model/models/model.json", str(path))


CASES: dict[str, tuple[str, Any, str]] = {
    "safetensors": ("model.safetensors", safetensors, "tensor weight"),
    "torch": ("model.pt", checkpoint, "tensor model.weight"),
    "distributed": ("__0_0.distcp", distributed, "tensor model.weight"),
    "export": ("model.pt2", exported, "tensor model/data/weights/weight_0"),
    "other": ("model.keras", lambda path, value: path.write_text(str(value)), "the bytes"),
}


@pytest.mark.parametrize(("name", "write", "differs"), CASES.values(), ids=CASES)
def test_the_first_difference_is_named(tmp_path: Path, name: str, write: Any, differs: str) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, value in ((first, 1.0), (second, 1.0)):
        folder.mkdir()
        write(folder / name, value)
    assert outputs._compare(first, second) == (1, "")
    write(second / name, 2.0)
    assert outputs._compare(first, second) == (1, f"{name}, {differs}")


def test_files_with_unique_names_are_matched(tmp_path: Path) -> None:
    for folder, token, value in (("a", "4ee7edb3", 1.0), ("b", "0123abcd", 2.0)):
        (tmp_path / folder).mkdir()
        checkpoint(tmp_path / folder / f"0-of-4-{token}.pt", value)
    assert outputs.compare(tmp_path / "a", tmp_path / "b") == (1, "0-of-4-4ee7edb3.pt, tensor model.weight")
