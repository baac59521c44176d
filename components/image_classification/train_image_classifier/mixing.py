"""Mixup (Zhang et al. 2017) and CutMix (Yun et al. 2019): training images are mixed in pairs, and their labels too."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Mixing:
    """mixup_alpha, cutmix_alpha: of the beta distributions of the shares; 0 disables one. With both, each batch uses
    one of them."""

    mixup_alpha: float = 0.0
    cutmix_alpha: float = 0.0

    @property
    def enabled(self) -> bool:
        """Whether anything is mixed."""
        return bool(self.mixup_alpha or self.cutmix_alpha)


def mix(
    pixels: Tensor, labels: Tensor, mixing: Mixing, class_count: int, random: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Return the mixed images, and the probability of each class, (batch, class_count).

    Each image is mixed with the image at its index in the reversed batch.

    pixels: (batch, channels, height, width), on any device, 0 to 255
    random: the same on every rank, or not
    """
    alphas = [
        (name, alpha) for name, alpha in (("mixup", mixing.mixup_alpha), ("cutmix", mixing.cutmix_alpha)) if alpha
    ]
    name, alpha = alphas[int(random.integers(len(alphas)))]
    share = float(random.beta(alpha, alpha))
    other = pixels.flip(0)
    if name == "mixup":
        mixed = share * pixels.float() + (1 - share) * other.float()
    else:
        height, width = pixels.shape[-2:]
        box_height, box_width = round(height * math.sqrt(1 - share)), round(width * math.sqrt(1 - share))
        top, left = random.integers(height - box_height + 1), random.integers(width - box_width + 1)
        mixed = pixels.clone()
        mixed[..., top : top + box_height, left : left + box_width] = other[
            ..., top : top + box_height, left : left + box_width
        ]
        share = 1 - box_height * box_width / (height * width)
    one_hot = functional.one_hot(labels, class_count).float()
    return mixed, torch.lerp(one_hot.flip(0), one_hot, share)
