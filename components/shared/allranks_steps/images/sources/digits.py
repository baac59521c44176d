"""The handwritten digits that ship with scikit-learn: 1797 grey images of 8 x 8 pixels, no download."""

from __future__ import annotations

import numpy as np

from allranks_steps.images.prepared_images import Images
from allranks_steps.images.sources import Collection


def read() -> Collection:
    """Return the digits 0 to 9, with their 17 shades (0 to 16) scaled to 0 to 255."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)[:, np.newaxis]
    return Collection(
        classes=tuple(str(name) for name in digits.target_names),
        images=Images(pixels, digits.target.astype(np.int64)),
    )
