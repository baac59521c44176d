"""Training images shifted and mirrored at random, the same for every number of ranks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Augmentation:
    """How far an image may be shifted, in pixels each way, and whether it may be mirrored left to right."""

    max_shift: int
    mirror: bool


@dataclass(frozen=True)
class Moves:
    """What is done to each image of a data set in one epoch: shifts (length, 2) in pixels, mirrored (length,)."""

    shifts: Tensor
    mirrored: Tensor


def draw(augmentation: Augmentation, length: int, *, seed: int, epoch: int) -> Moves:
    """The moves of an epoch, for all images at once: an image moves alike whichever rank it falls to."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shifts = torch.randint(-augmentation.max_shift, augmentation.max_shift + 1, (length, 2), generator=generator)
    mirrored = torch.randint(0, 2, (length,), generator=generator).bool()
    return Moves(shifts, mirrored if augmentation.mirror else torch.zeros_like(mirrored))


def move(pixels: Tensor, moves: Moves, indices: Tensor) -> Tensor:
    """The images of these indices, shifted and then mirrored. What moves in from outside is 0.

    pixels: (batch, channels, height, width), like what is returned; indices: (batch,), into the data set
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
