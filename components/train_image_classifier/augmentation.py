"""Random shifts and mirroring of training images, the same for every number of ranks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Augmentation:
    """The maximum shift in pixels in each direction, and whether images may be mirrored left to right."""

    max_shift: int
    mirror: bool


@dataclass(frozen=True)
class Moves:
    """The moves of each image of a data set in one epoch: shifts (length, 2) in pixels, mirrored (length,)."""

    shifts: Tensor
    mirrored: Tensor


def draw(augmentation: Augmentation, length: int, *, seed: int, epoch: int) -> Moves:
    """Draw the moves of an epoch for all images at once, so that they do not depend on the rank."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shifts = torch.randint(-augmentation.max_shift, augmentation.max_shift + 1, (length, 2), generator=generator)
    mirrored = torch.randint(0, 2, (length,), generator=generator).bool()
    return Moves(shifts, mirrored if augmentation.mirror else torch.zeros_like(mirrored))


def move(pixels: Tensor, moves: Moves, indices: Tensor) -> Tensor:
    """Return the images, shifted and then mirrored. Pixels from outside the image are 0.

    pixels: (batch, channels, height, width), like the result; indices: (batch,), into the data set
    """
    batch, channels, height, width = pixels.shape
    margin = int(moves.shifts.abs().max())
    padded = torch.nn.functional.pad(pixels, (margin, margin, margin, margin))
    down, right = moves.shifts[indices].reshape(batch, 2, 1, 1, 1).unbind(dim=1)
    columns = torch.arange(width).expand(batch, 1, 1, width)
    columns = torch.where(moves.mirrored[indices].reshape(batch, 1, 1, 1), columns.flip(3), columns)
    rows = torch.arange(height).reshape(1, 1, height, 1)
    image, channel = torch.arange(batch).reshape(batch, 1, 1, 1), torch.arange(channels).reshape(1, channels, 1, 1)
    return padded[image, channel, rows + margin + down, columns + margin + right]
