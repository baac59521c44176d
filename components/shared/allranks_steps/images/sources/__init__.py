"""Where images come from: one module for each source."""

from __future__ import annotations

from dataclasses import dataclass

from allranks_steps.images.prepared_images import Images


@dataclass(frozen=True)
class Collection:
    """Labelled images and the names of their classes."""

    classes: tuple[str, ...]
    images: Images
