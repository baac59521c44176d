"""Read labelled images, divide them into training, validation and test sets, and write them as arrays."""

import argparse
from collections.abc import Sequence

import numpy as np

from allranks.runtime import arguments
from allranks_steps.images import sources
from allranks_steps.images.prepared_images import SPLITS, BadData, Description, Images, describe, write


def prepare(args: argparse.Namespace) -> Description:
    """Read the source, divide its images, and write them to the output. Raise InputError before anything is written."""
    if args.source == "digits":
        collection = sources.digits()
    else:
        collection = sources.folder_of_classes(args.folder, args.image_size)
    shares = [args.validation_fraction, args.test_fraction]
    parts = divide(collection.images, shares, collection.classes, np.random.default_rng(args.seed))
    splits = dict(zip(SPLITS, parts, strict=True))
    description = describe(args.source, collection.classes, splits)
    write(args.images, description, splits)
    return description


def main() -> None:
    description = prepare(arguments())
    counts = ", ".join(f"{count} for {split}" for split, count in description.counts.items())
    print(f"{len(description.classes)} classes, images of {' x '.join(map(str, description.shape))}: {counts}")


def divide(
    images: Images, shares: Sequence[float], classes: tuple[str, ...], generator: np.random.Generator
) -> list[Images]:
    """Divide the images into the remainder and one part for each share, with the same shares of every class.

    Every part gets at least one image of every class. Raise BadData if a class has too few images for that.
    """
    parts: list[list[np.ndarray]] = [[] for _ in range(len(shares) + 1)]
    for label, name in enumerate(classes):
        members = generator.permutation(np.flatnonzero(images.labels == label))
        counts = [max(1, round(share * len(members))) for share in shares]
        rest = len(members) - sum(counts)
        if rest < 1:
            raise BadData(
                f"class {name!r} has {len(members)} images, too few for {len(parts)} splits with the shares "
                f"{', '.join(map(str, shares))}. Add images, leave the class out, or lower the fractions.",
                "input source",
            )
        for part, indices in zip(parts, np.split(members, np.cumsum([rest, *counts[:-1]])), strict=True):
            part.append(indices)
    return [images[generator.permutation(np.concatenate(part))] for part in parts]


if __name__ == "__main__":
    main()
