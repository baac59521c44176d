"""Select images for training, validation and testing from those that have arrived."""

from collections.abc import Iterable
from dataclasses import dataclass

from arrivals import Arrival, Arrivals
from trained_on import TrainedOn

from allranks_steps.images.prepared_images import BadData


@dataclass(frozen=True)
class Shares:
    """The fractions of all images for validation and for the test set."""

    validation: float
    test: float


@dataclass(frozen=True)
class Selection:
    """The images of each split, and all images that the new model will have been trained on.

    waiting:     number of new training images that wait, because they are too few
    conflicting: number of images that are in several classes, and are omitted
    """

    train: tuple[Arrival, ...]
    validation: tuple[Arrival, ...]
    test: tuple[Arrival, ...]
    trained_on: TrainedOn
    waiting: int
    conflicting: int


def select(arrivals: Arrivals, earlier: TrainedOn, shares: Shares, minimum_new: int) -> Selection:
    """Divide the images that have arrived. earlier: training images of the champion.

    Raise BadData if the classes are not the champion's, or a required split has no image.
    """
    if earlier.classes and earlier.classes != arrivals.classes:
        raise BadData(
            f"the data has the classes {', '.join(arrivals.classes)}, and the champion was trained on "
            f"{', '.join(earlier.classes)}. Register a model of other classes under another name.",
            "input champion",
        )
    images, conflicting = unambiguous(arrivals.images)
    parts: dict[str, list[Arrival]] = {"train": [], "validation": [], "test": []}
    for image in images:
        name_of_split = split(image.digest, shares)
        if name_of_split == "train":
            if earlier.images.get(image.digest) != arrivals.classes[image.label]:
                parts[name_of_split].append(image)
        elif image.digest not in earlier.images:
            # With other shares, the champion may have been trained on this image: it cannot be held out.
            parts[name_of_split].append(image)
    for name in ("validation", "test"):
        if not parts[name]:
            found = f"of {len(images)} images none is for {name}. Add images, or raise {name}_fraction."
            raise BadData(found, f"input {name}_fraction")
    new = parts["train"]
    waiting = len(new) if earlier.images and len(new) < minimum_new else 0
    if waiting:
        new = []
    if not new and not earlier.images:
        raise BadData("there is no image to train on. Add images, or lower the fractions.", "input source")
    learnt = {image.digest: arrivals.classes[image.label] for image in new}
    after = TrainedOn(arrivals.classes, {**earlier.images, **learnt})
    return Selection(tuple(new), tuple(parts["validation"]), tuple(parts["test"]), after, waiting, conflicting)


def split(digest: str, shares: Shares) -> str:
    """Return the split of an image. It depends only on the content, so it does not change when other images arrive.

    Validation and test are at opposite ends of the range, so that a change of one share does not affect the other.
    """
    position = int(digest[:12], 16) / 16**12
    if position < shares.test:
        return "test"
    return "validation" if position >= 1 - shares.validation else "train"


def unambiguous(images: Iterable[Arrival]) -> tuple[list[Arrival], int]:
    """Return each image once, sorted by digest, without those with several labels; and the number of those."""
    unique: dict[str, Arrival] = {}
    conflicting: set[str] = set()
    for image in images:
        if unique.setdefault(image.digest, image).label != image.label:
            conflicting.add(image.digest)
    return [unique[digest] for digest in sorted(unique) if digest not in conflicting], len(conflicting)
