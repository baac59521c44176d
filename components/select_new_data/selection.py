"""Which of the images that have arrived are trained on now, which watch training, and which are held out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from arrivals import Arrival, Arrivals
from prepared_images import BadData
from trained_on import TrainedOn


@dataclass(frozen=True)
class Shares:
    """The shares of all images that go to validation and to the test set."""

    validation: float
    test: float


@dataclass(frozen=True)
class Selection:
    """The images of each split, and what a model is trained on once it has seen them.

    waiting:     new training images that are too few, and wait
    conflicting: images that stand in several classes, and are left out
    """

    train: tuple[Arrival, ...]
    validation: tuple[Arrival, ...]
    test: tuple[Arrival, ...]
    trained_on: TrainedOn
    waiting: int
    conflicting: int


def select(arrivals: Arrivals, earlier: TrainedOn, shares: Shares, minimum_new: int) -> Selection:
    """Divide what has arrived. earlier: what the champion was trained on.

    Raises BadData where the classes are not the champion's, or a split that is needed has no image.
    """
    if earlier.classes and earlier.classes != arrivals.classes:
        raise BadData(
            f"the data has the classes {', '.join(arrivals.classes)}, and the champion was trained on "
            f"{', '.join(earlier.classes)}. Register a model of other classes under another name."
        )
    images, conflicting = unambiguous(arrivals.images)
    parts: dict[str, list[Arrival]] = {"train": [], "validation": [], "test": []}
    for image in images:
        place = split(image.digest, shares)
        if place == "train":
            if earlier.images.get(image.digest) != arrivals.classes[image.label]:
                parts[place].append(image)
        elif image.digest not in earlier.images:
            # A champion knows what it was trained on, also where the shares were others then.
            parts[place].append(image)
    for name in ("validation", "test"):
        if not parts[name]:
            raise BadData(f"of {len(images)} images none is for {name}. Add images, or raise {name}_fraction.")
    new = parts["train"]
    waiting = len(new) if earlier.images and len(new) < minimum_new else 0
    if waiting:
        new = []
    if not new and not earlier.images:
        raise BadData("there is no image to train on. Add images, or lower the fractions.")
    learnt = {image.digest: arrivals.classes[image.label] for image in new}
    after = TrainedOn(arrivals.classes, {**earlier.images, **learnt})
    return Selection(tuple(new), tuple(parts["validation"]), tuple(parts["test"]), after, waiting, conflicting)


def split(digest: str, shares: Shares) -> str:
    """Where an image belongs, by its content alone: it does not change when others come.

    The two that are not trained on are at opposite ends, so that a change of one share leaves the other as it is.
    """
    place = int(digest[:12], 16) / 16**12
    if place < shares.test:
        return "test"
    return "validation" if place >= 1 - shares.validation else "train"


def unambiguous(images: Iterable[Arrival]) -> tuple[list[Arrival], int]:
    """Each image once, in an order that contents decide, without those of several labels; and how many those are."""
    found: dict[str, Arrival] = {}
    conflicting: set[str] = set()
    for image in images:
        if found.setdefault(image.digest, image).label != image.label:
            conflicting.add(image.digest)
    return [found[digest] for digest in sorted(found) if digest not in conflicting], len(conflicting)
