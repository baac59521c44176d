"""Read labelled images, divide them into training, validation and test sets, and write them as arrays."""

from __future__ import annotations

import argparse

import numpy as np
from splits import divide

from allranks.runtime import arguments
from allranks_steps.images.prepared_images import Description, Images, describe, write
from allranks_steps.images.sources import Collection


def prepare(args: argparse.Namespace) -> Description:
    """Read the source, divide its images, and write them to the output. Raise InputError before anything is written."""
    collection = read(args)
    splits = divided(collection, args)
    description = describe(args.source, collection.classes, splits)
    write(args.images, description, splits)
    return description


def read(args: argparse.Namespace) -> Collection:
    """Return the images of the source. Raise InputError if they cannot be read."""
    # Each source is imported on use: only digits needs scikit-learn, only folder needs Pillow.
    if args.source == "digits":
        from allranks_steps.images.sources import digits

        return digits.read()
    from allranks_steps.images.sources import folder

    return folder.read(args.folder, args.image_size)


def divided(collection: Collection, args: argparse.Namespace) -> dict[str, Images]:
    """Return the collection's splits. Raise InputError if a class has too few images."""
    shares = [args.validation_fraction, args.test_fraction]
    parts = divide(collection.images, shares, collection.classes, np.random.default_rng(args.seed))
    return dict(zip(("train", "validation", "test"), parts, strict=True))


def main() -> None:
    description = prepare(arguments())
    counts = ", ".join(f"{count} for {split}" for split, count in description.counts.items())
    print(f"{len(description.classes)} classes, images of {' x '.join(map(str, description.shape))}: {counts}")


if __name__ == "__main__":
    main()
