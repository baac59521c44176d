"""Random changes of training images.

All random numbers of an image are drawn when it is loaded, from the seed, the epoch and the index of the image. An
image therefore changes in the same way on any rank, in any batch, on a loader worker and on a GPU."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from allranks_steps.images.image_data import policies

DRAWS = 13
"""Numbers in [0, 1) that are drawn for an image. 0 to 3: crop; 4, 5: shift; 6: flip; 7 to 12: policy."""


@dataclass(frozen=True)
class Augmentation:
    """The random changes of images.

    min_crop_scale:   smallest fraction of an image's area in a random crop; 1 for no crop
    max_shift:       largest shift in pixels in each direction
    horizontal_flip: whether images may be mirrored left to right
    policy:          none, trivialaugment or randaugment, see `policies`
    """

    min_crop_scale: float = 1.0
    max_shift: int = 0
    horizontal_flip: bool = False
    policy: str = "none"


def augment(pixels: Tensor, draws: Tensor, augmentation: Augmentation, *, crop: bool) -> Tensor:
    """Return the changed images, on the device of the pixels.

    pixels: (batch, channels, height, width) uint8, like the result
    draws:  (batch, DRAWS), on the CPU
    crop:   whether to crop here; the images of files are cropped when they are decoded

    Pixels from outside an image are 0.
    """
    changes = _geometry(draws, augmentation, pixels.shape[-2:], crop=crop)
    images = pixels
    if changes is not None:
        # bfloat16 could not hold the positions. The identity is exact up to the rounding below.
        with torch.autocast(pixels.device.type, enabled=False):
            theta = changes[:, :2].to(pixels.device, non_blocking=True)
            grid = functional.affine_grid(theta, list(pixels.shape), align_corners=False)
            images = functional.grid_sample(images.float(), grid, align_corners=False)
    if augmentation.policy != "none":
        images = policies.recolour(images.float() / 255, draws[:, 7:13], augmentation.policy) * 255
    return images if images is pixels else images.round().clamp(0, 255).to(torch.uint8)


def _geometry(
    draws: Tensor, augmentation: Augmentation, size: tuple[int, int] | torch.Size, *, crop: bool
) -> Tensor | None:
    """Return a matrix for each image, (batch, 3, 3), that maps positions in the result to positions in the image, both
    from -1 to 1; None if nothing moves."""
    height, width = size
    batch = len(draws)
    matrices = []
    if crop and augmentation.min_crop_scale < 1:
        share = augmentation.min_crop_scale + (1 - augmentation.min_crop_scale) * draws[:, 0]
        ratio = torch.exp((2 * draws[:, 1] - 1) * math.log(4 / 3))
        across, down = (share * ratio).sqrt().clamp(max=1), (share / ratio).sqrt().clamp(max=1)
        matrix = _identity(batch)
        matrix[:, 0, 0], matrix[:, 1, 1] = across, down
        matrix[:, 0, 2], matrix[:, 1, 2] = (1 - across) * (2 * draws[:, 2] - 1), (1 - down) * (2 * draws[:, 3] - 1)
        matrices.append(matrix)
    if augmentation.max_shift:
        steps = (draws[:, 4:6] * (2 * augmentation.max_shift + 1)).floor() - augmentation.max_shift
        matrix = _identity(batch)
        matrix[:, 0, 2], matrix[:, 1, 2] = 2 * steps[:, 0] / width, 2 * steps[:, 1] / height
        matrices.append(matrix)
    if augmentation.horizontal_flip:
        matrix = _identity(batch)
        matrix[:, 0, 0] = torch.where(draws[:, 6] < 0.5, -1.0, 1.0)
        matrices.append(matrix)
    if augmentation.policy != "none":
        matrices.append(policies.geometry(draws[:, 7:13], augmentation.policy, height, width))
    if not matrices:
        return None
    product = matrices[0]
    for matrix in matrices[1:]:
        product = product @ matrix
    return product


def _identity(batch: int) -> Tensor:
    return torch.eye(3).repeat(batch, 1, 1)
