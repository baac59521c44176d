"""Divide images into stratified training, validation and test sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from allranks_steps.images.prepared_images import BadData, Images


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
