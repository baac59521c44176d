"""The images that a source returns."""

from __future__ import annotations

from dataclasses import dataclass

from allranks_steps.images.prepared_images import Images


@dataclass(frozen=True)
class Collection:
    """Labelled images and the names of their classes.

    test: the source's own test set, None if it has none
    """

    classes: tuple[str, ...]
    images: Images
    test: Images | None = None
