"""Select new training images, and held-out images, from labelled images that arrive over time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import arrivals
import numpy as np
import trained_on
from arrivals import Arrival, Arrivals
from selection import Selection, Shares, select

from allranks.runtime import arguments
from allranks_steps.images.prepared_images import Images, describe, write
from allranks_steps.json_files import write_json


def select_new_data(
    came: Arrivals, champion: Path | None, shares: Shares, minimum_new: int, images: Path, selection: Path
) -> dict[str, Any]:
    """Write the outputs, and return the content of selection.json. Raise BadData before anything is written."""
    selected = select(came, trained_on.read(champion), shares, minimum_new)
    shape = selected.test[0].pixels().shape
    splits = {name: read(getattr(selected, name), shape) for name in ("train", "validation", "test")}
    write(images, describe(came.source, came.classes, splits), splits)
    content = summary(came, selected)
    write_json(selection / "selection.json", content)
    trained_on.write(selection, selected.trained_on)
    return content


def read(selected: Sequence[Arrival], shape: tuple[int, ...]) -> Images:
    """Read the images; there may be none."""
    pixels = np.empty((len(selected), *shape), np.uint8)
    for index, image in enumerate(selected):
        pixels[index] = image.pixels()
    return Images(pixels, np.array([image.label for image in selected], np.int64))


def summary(came: Arrivals, selected: Selection) -> dict[str, Any]:
    """Return the content of selection.json."""
    held_out = {image.digest: came.classes[image.label] for image in selected.test}
    return {
        "source": came.source,
        "arrived": len(came.images),
        "new": len(selected.train),
        "waiting": selected.waiting,
        "conflicting": selected.conflicting,
        "trained_on": len(selected.trained_on.images),
        "held_out": len(held_out),
        "data_version": trained_on.version(selected.trained_on.images),
        "held_out_version": trained_on.version(held_out),
    }


def main() -> None:
    args = arguments()
    shares = Shares(args.validation_fraction, args.test_fraction)
    if args.source == "digits":
        arrived = arrivals.arrived_digits(args.arrived)
    else:
        arrived = arrivals.arrived_images(args.folder, args.image_size)
    result = select_new_data(arrived, args.champion, shares, args.minimum_new, args.images, args.selection)
    if result["conflicting"]:
        print(f"{result['conflicting']} images are in several classes and are left out")
    if result["waiting"]:
        print(f"{result['waiting']} new images are fewer than {args.minimum_new}, and wait for the next recurrence")
    print(f"{result['new'] or 'no'} new images of {result['arrived']}, {result['held_out']} held out")


if __name__ == "__main__":
    main()
