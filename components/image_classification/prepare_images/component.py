"""prepare_images: labelled images from one of several sources, divided into training, validation and test sets."""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../../environments/cpu/environment.yaml"


@command_component(
    name="allranks_prepare_images",
    version="0.1.0",
    display_name="Prepare images",
    description=(
        "Reads labelled images (scikit-learn's handwritten digits, CIFAR-10, or a folder of images), divides them into "
        "training, validation and test sets in which every class has its share, and writes them as arrays."
    ),
    tags={"task": "image-classification", "launch": "single process"},
    is_deterministic=True,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def prepare_images(
    images: Output(
        type="uri_folder",
        mode="rw_mount",
        description=(
            "For each of the three splits a NumPy file of pixels (uint8, 0 to 255, of shape count x channels x height "
            "x width) and one of labels (int64), and dataset.json about them."
        ),
    ),
    folder: Input(
        type="uri_folder",
        mode="ro_mount",
        optional=True,
        description=(
            "For source 'folder': a folder with one sub-folder of images for each class, in PNG, JPEG or another "
            "format that Pillow reads."
        ),
    ) = None,
    archive: Input(
        type="uri_file",
        mode="ro_mount",
        optional=True,
        description="For source 'cifar10': cifar-10-python.tar.gz. Without it, it is downloaded from archive_url.",
    ) = None,
    source: Input(
        type="string",
        enum=["digits", "cifar10", "folder"],
        description="Where the images come from: scikit-learn's digits, CIFAR-10's python version, or a folder.",
    ) = "digits",
    archive_url: Input(
        type="string", description="For source 'cifar10': the http(s) address of the tarball."
    ) = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    archive_md5: Input(
        type="string", description="For source 'cifar10': the MD5 checksum that the tarball must have, hexadecimal."
    ) = "c58f30108f718f92721af3b95e74349a",
    image_size: Input(
        type="integer", min=8, max=512, description="For source 'folder': width and height in pixels of every image."
    ) = 32,
    validation_fraction: Input(
        type="number", min=0.01, max=0.4, description="Share of each class's images that goes to validation."
    ) = 0.1,
    test_fraction: Input(
        type="number",
        min=0.01,
        max=0.4,
        description="Share of each class's images that goes to the test set. CIFAR-10 keeps its own test set.",
    ) = 0.2,
    seed: Input(type="integer", min=0, description="Seed of the division: the same seed gives the same splits.") = 0,
):
    # Imported here: only a job has this folder on its path, and only a job needs NumPy.
    from preparation import Request, prepare

    from allranks_steps.images.prepared_images import BadData

    request = Request(
        source=source,
        folder=Path(folder) if folder else None,
        archive=Path(archive) if archive else None,
        archive_url=archive_url,
        archive_md5=archive_md5,
        image_size=image_size,
        validation_fraction=validation_fraction,
        test_fraction=test_fraction,
        seed=seed,
    )
    try:
        description = prepare(request, Path(images))
    except BadData as error:
        print(f"prepare_images: {error}", file=sys.stderr)
        sys.exit(2)
    counts = ", ".join(f"{count} for {split}" for split, count in description.counts.items())
    print(f"{len(description.classes)} classes, images of {' x '.join(map(str, description.shape))}: {counts}")
