"""trained_on.json: every training image of a model, by its content. The file is part of the registered model."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from allranks_steps.images.prepared_images import BadData

FILE = "trained_on.json"


@dataclass(frozen=True)
class TrainedOn:
    """classes: their names; images: digest -> class in the training"""

    classes: tuple[str, ...] = ()
    images: Mapping[str, str] = field(default_factory=dict)


def read(folder: Path | None) -> TrainedOn:
    """Read the training images of the model in the folder; none if there is no model or no such file.

    Raise BadData if the file is damaged.
    """
    if folder is None or not (folder / FILE).exists():
        return TrainedOn()
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return TrainedOn(tuple(content["classes"]), {str(key): str(value) for key, value in content["images"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{folder / FILE} is damaged ({error!r}). Register the model again with a whole one."
        raise BadData(found, "input champion") from None


def write(folder: Path, trained_on: TrainedOn) -> None:
    """Write the file. Equal content gives equal files."""
    content = {"classes": list(trained_on.classes), "images": dict(sorted(trained_on.images.items()))}
    (folder / FILE).write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")


def version(images: Mapping[str, str]) -> str:
    """Return a short digest of these images and their labels."""
    lines = "".join(f"{digest} {name}\n" for digest, name in sorted(images.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]
