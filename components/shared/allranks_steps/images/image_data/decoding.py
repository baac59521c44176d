"""Decode image files to arrays of one size."""

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from allranks_steps.images.image_data.images import Encoded
from allranks_steps.images.prepared_images import BadData

SHORTER_SIDE = 256 / 224
"""For evaluation, ratio of the shorter side of an image to the centre crop, as in the papers of the presets."""
RATIOS = (3 / 4, 4 / 3)
"""Width by height of random crops, as in the papers."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Decoder:
    """size: height and width of the result; channels: 1 for grey, 3 for RGB"""

    size: tuple[int, int]
    channels: int

    def centre(self, image: Encoded) -> NDArray[np.uint8]:
        """Return the centre of the image, (channels, height, width). Raise BadData if it cannot be decoded."""
        return self._decode(image, lambda width, height: centre_box(width, height, self.size))

    def random(self, image: Encoded, smallest_share: float, draws: Sequence[float]) -> NDArray[np.uint8]:
        """Return a random crop of the image, (channels, height, width). Raise BadData if it cannot be decoded.

        smallest_share: smallest fraction of the image's area in a crop
        draws:          four numbers of [0, 1), for the share, the ratio of the sides, and the position
        """
        return self._decode(image, lambda width, height: random_box(width, height, smallest_share, draws))

    def _decode(self, image: Encoded, box: Callable[[int, int], Box]) -> NDArray[np.uint8]:
        with decoding_errors(image.name), Image.open(io.BytesIO(image.content)) as opened:
            # A JPEG is decoded at a smaller scale if that is sufficient.
            opened.draft(None, (2 * self.size[1], 2 * self.size[0]))
            upright = ImageOps.exif_transpose(opened).convert("L" if self.channels == 1 else "RGB")
            crop = box(*upright.size)
            resized = upright.resize(self.size[::-1], Image.Resampling.BILINEAR, box=crop)
        pixels: NDArray[np.uint8] = np.asarray(resized, dtype=np.uint8)
        return pixels[np.newaxis] if self.channels == 1 else pixels.transpose(2, 0, 1)


@contextmanager
def decoding_errors(name: str, where: str = "input data") -> Iterator[None]:
    """Context manager that raises BadData for errors of Pillow. name: of the image, for the message"""
    try:
        yield
    # The errors of Pillow's decoders for damaged files have no common base class.
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        # Pillow's message names the buffer's address.
        found = "no image format that Pillow knows" if isinstance(error, UnidentifiedImageError) else error
        raise BadData(f"{name} cannot be read as an image ({found}). Repair or remove it.", where) from None


def centre_box(width: int, height: int, size: tuple[int, int]) -> Box:
    """Return the box in the image whose content is the centre crop: left, upper, right, lower. An image of the size
    of the crop is not cropped."""
    if (height, width) == size:
        return 0, 0, width, height
    scale = min(height / (SHORTER_SIDE * size[0]), width / (SHORTER_SIDE * size[1]))
    crop_width, crop_height = scale * size[1], scale * size[0]
    left, upper = (width - crop_width) / 2, (height - crop_height) / 2
    return left, upper, left + crop_width, upper + crop_height


def random_box(width: int, height: int, smallest_share: float, draws: Sequence[float]) -> Box:
    """Return a random box in the image: left, upper, right, lower."""
    area = width * height * (smallest_share + (1 - smallest_share) * draws[0])
    low, high = (math.log(ratio) for ratio in RATIOS)
    ratio = math.exp(low + (high - low) * draws[1])
    crop_width, crop_height = min(width, math.sqrt(area * ratio)), min(height, math.sqrt(area / ratio))
    left, upper = (width - crop_width) * draws[2], (height - crop_height) * draws[3]
    return left, upper, left + crop_width, upper + crop_height
