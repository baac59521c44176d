"""The recipes whose training is measured: where their code is, their data, and their loss."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

COMPONENTS = Path(__file__).resolve().parents[2] / "components"


@dataclass(frozen=True)
class Recipe:
    """A component that trains.

    name:       of its folder
    includes:   folders whose modules it imports too
    never:      inputs that are steps between what a benchmark does without
    unit:       of its rate
    write_data: writes an input `data` to a folder, and returns the folder
    loss:       returns the loss of a batch of the recipe's loader
    """

    name: str
    includes: tuple[str, ...]
    never: tuple[str, ...]
    unit: str
    write_data: Callable[[Path], Path]
    loss: Callable[[Any, Any], Any]

    def import_path(self) -> list[str]:
        """Return the folders of the component's modules."""
        return [str(next(COMPONENTS.rglob(folder))) for folder in (self.name, *self.includes)]


def _write_images(folder: Path) -> Path:
    from allranks_steps.images import prepared_images

    random = np.random.default_rng(0)
    splits = {
        split: prepared_images.Images(
            random.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8), random.integers(0, 10, count)
        )
        for split, count in (("train", 4096), ("validation", 64), ("test", 64))
    }
    classes = tuple(str(number) for number in range(10))
    prepared_images.write(folder, prepared_images.describe("random numbers", classes, splits), splits)
    return folder


def _image_loss(model: Any, batch: Any) -> Any:
    from torch.nn import functional

    return functional.cross_entropy(model(batch.pixels), batch.labels)


def _write_text(folder: Path) -> Path:
    sys.path.append(str(COMPONENTS / "language_modelling/prepare_text"))
    from shard_writer import ShardWriter

    from allranks_steps.text.prepared_text import TOKENIZER, Description, write_description

    folder.mkdir()
    size, random, counts, shards = 2048, np.random.default_rng(0), {"train": 1 << 21, "validation": 1 << 12}, {}
    for split, count in counts.items():
        writer = ShardWriter(folder, split, "uint16", 1 << 24)
        writer.append(random.integers(0, size, count, dtype=np.uint16))
        shards[split] = writer.close()
    (folder / TOKENIZER).write_text("{}")
    write_description(
        folder, Description("random numbers", size, 0, "uint16", counts, counts, counts, shards, {}, size)
    )
    return folder


def _text_loss(model: Any, batch: Any) -> Any:
    return model(batch[:, :-1], batch[:, 1:])


IMAGES = Recipe(
    "train_image_classifier",
    includes=(),
    never=("eval_steps",),
    unit="images a second",
    write_data=_write_images,
    loss=_image_loss,
)
TEXT = Recipe(
    "train_language_model",
    includes=(),
    never=(),
    unit="tokens a second",
    write_data=_write_text,
    loss=_text_loss,
)
RECIPES = {recipe.name: recipe for recipe in (IMAGES, TEXT)}
