"""Automatic augmentation policies: TrivialAugment (Mueller and Hutter 2021, arXiv 2103.10158) and RandAugment (Cubuk et
al. 2019, arXiv 1909.13719), with their operations and ranges.

TrivialAugment applies one operation to an image, with a random strength. RandAugment applies two, with a strength of 9
out of 30. Operations on colours always follow those that move pixels, so that pixels are sampled once.
"""

import math
from typing import Any

import torch
from torch import Tensor

MOVES = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
COLOURS = ("brightness", "saturation", "contrast", "sharpness", "posterize", "solarize", "autocontrast", "equalize")
OPERATIONS = ("identity", *MOVES, *COLOURS)
POLICIES = ("none", "trivialaugment", "randaugment")
RANDAUGMENT_STRENGTH = 9 / 30


def operations(draws: Tensor, policy: str) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return the operations of each image, one or two times: their numbers in OPERATIONS, strengths in [0, 1], and
    signs, each of shape (batch,). draws: (batch, 6)"""
    found = []
    for first in (0, 3) if policy == "randaugment" else (0,):
        chosen = (draws[:, first] * len(OPERATIONS)).long().clamp(max=len(OPERATIONS) - 1)
        strengths = draws[:, first + 1]
        if policy == "randaugment":
            strengths = torch.full_like(strengths, RANDAUGMENT_STRENGTH)
        found.append((chosen, strengths, torch.where(draws[:, first + 2] < 0.5, -1.0, 1.0)))
    return found


def geometry(draws: Tensor, policy: str, height: int, width: int) -> Tensor:
    """Return a matrix for each image, (batch, 3, 3), as `augmentation` composes them."""
    wide = policy == "trivialaugment"  # its ranges are wider
    product = torch.eye(3).repeat(len(draws), 1, 1)
    for chosen, strengths, signs in operations(draws, policy):
        matrix = torch.eye(3).repeat(len(draws), 1, 1)
        amount = signs * strengths
        shear = amount * (0.99 if wide else 0.3)
        # By at most 32 pixels of 224, or 45 % of the side.
        shift = 2 * amount * (32 / 224 if wide else 0.45)
        angle = amount * math.radians(135 if wide else 30)
        is_move = {name: chosen == OPERATIONS.index(name) for name in MOVES}
        matrix[:, 0, 1] = torch.where(is_move["shear_x"], shear, matrix[:, 0, 1])
        matrix[:, 1, 0] = torch.where(is_move["shear_y"], shear, matrix[:, 1, 0])
        matrix[:, 0, 2] = torch.where(is_move["translate_x"], shift, matrix[:, 0, 2])
        matrix[:, 1, 2] = torch.where(is_move["translate_y"], shift, matrix[:, 1, 2])
        rotation = torch.eye(3).repeat(len(draws), 1, 1)
        rotation[:, 0, 0] = rotation[:, 1, 1] = angle.cos()
        rotation[:, 0, 1], rotation[:, 1, 0] = -angle.sin() * height / width, angle.sin() * width / height
        matrix = torch.where(is_move["rotate"].reshape(-1, 1, 1), rotation, matrix)
        product = product @ matrix
    return product


def recolour(images: Tensor, draws: Tensor, policy: str) -> Tensor:
    """Return the images with the policy's operations on colours. images: (batch, channels, height, width), 0 to 1

    draws: (batch, 6), on the CPU, so that nothing waits for a GPU
    """
    images = images.clone()
    for chosen, strengths, signs in operations(draws, policy):
        for name in COLOURS:
            rows = torch.nonzero(chosen == OPERATIONS.index(name)).flatten()
            if len(rows):
                on_device = rows.to(images.device, non_blocking=True)
                changed: Tensor = _recoloured(images[on_device], name, strengths[rows], signs[rows], policy)
                images[on_device] = changed.clamp(0, 1)
    return images


def _recoloured(images: Tensor, name: str, strengths: Tensor, signs: Tensor, policy: str) -> Any:
    # kornia takes long to import, and most trainings do not need it.
    from kornia import enhance

    wide = policy == "trivialaugment"
    # A factor of 1 changes nothing.
    factors = (1 + signs * strengths * (0.99 if wide else 0.9)).to(images.device, non_blocking=True)
    if name == "brightness":
        return enhance.adjust_brightness_accumulative(images, factors)
    if name == "saturation":
        # A grey image has no saturation.
        return images if images.shape[1] == 1 else enhance.adjust_saturation_with_gray_subtraction(images, factors)
    if name == "contrast":
        return enhance.adjust_contrast_with_mean_subtraction(images, factors)
    if name == "sharpness":
        return enhance.sharpness(images, factors)
    if name == "posterize":
        # Of 8 bits, TrivialAugment keeps 2 at least, RandAugment 4.
        kept = 8 - (strengths * (6 if wide else 4)).round().int()
        return enhance.posterize(images, kept.to(images.device, non_blocking=True))
    if name == "solarize":
        thresholds = (1 - strengths).to(images.device, non_blocking=True).reshape(-1, 1, 1, 1)
        return torch.where(images < thresholds, images, 1 - images)
    if name == "autocontrast":
        return enhance.normalize_min_max(images)
    return enhance.equalize(images)
