"""What a source gives."""

from __future__ import annotations

from dataclasses import dataclass

from prepared_images import Images


@dataclass(frozen=True)
class Collection:
    """Labelled images and the names of their classes.

    test: the test set that the source itself sets apart, or None where it sets none apart
    """

    classes: tuple[str, ...]
    images: Images
    test: Images | None = None
