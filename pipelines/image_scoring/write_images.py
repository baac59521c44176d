"""Write the test images of prepared arrays as files, NUMBER_LABEL.png, which stand for the images of a user."""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
parser.add_argument("--images", type=Path, required=True)
args = parser.parse_args()

pixels, labels = (np.load(args.data / f"test_{part}.npy") for part in ("pixels", "labels"))
for number, (image, label) in enumerate(zip(pixels, labels, strict=True)):
    array = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    Image.fromarray(array).save(args.images / f"{number:05}_{label}.png")
print(f"{len(pixels)} images")
