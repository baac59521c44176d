"""An image model of Transformers that takes raw pixels, and returns a score for each class."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForImageClassification, PretrainedConfig

BLOCKS = {"ResNetBasicLayer", "ResNetBottleNeckLayer", "ConvNextV2Layer", "ViTLayer", "SwinLayer"}
"""Classes of the blocks of our presets, which are sharded and recomputed one by one."""


class ImageClassifier(nn.Module):
    """A network with built-in normalisation and resizing. Callers pass raw pixels and cannot scale them wrongly.

    network:   maps normalised images to an output with `logits`
    mean, std: of each channel, as fractions of 255
    size:      height and width to which images are resized; None if they have that size already
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, network: nn.Module, mean: Sequence[float], std: Sequence[float], size: tuple[int, int] | None
    ) -> None:
        super().__init__()
        self.network = network
        self.size = size
        self.register_buffer("mean", 255 * torch.tensor(mean).reshape(-1, 1, 1))
        self.register_buffer("std", 255 * torch.tensor(std).reshape(-1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Return scores (batch, classes), before softmax. pixels: (batch, channels, height, width), 0 to 255."""
        images = (pixels.float() - self.mean) / self.std
        if self.size is not None:
            images = functional.interpolate(images, size=self.size, mode="bilinear", antialias=True)
        scores: Tensor = self.network(images).logits
        return scores


@dataclass(frozen=True)
class Architecture:
    """The settings from which a classifier is built.

    config:       of the network
    network_size: height and width inside of the network
    image_size:   height and width of the pixels that the classifier takes
    mean, std:    for the normalisation of images
    """

    config: PretrainedConfig
    network_size: tuple[int, int]
    image_size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def build(self) -> ImageClassifier:
        """Return a classifier with random weights."""
        network = AutoModelForImageClassification.from_config(self.config)
        size = None if self.network_size == self.image_size else self.network_size
        return ImageClassifier(network, self.mean, self.std, size)


def blocks(model: nn.Module) -> tuple[type[nn.Module], ...]:
    """Return the classes of the network's blocks, in a fixed order."""
    classes = {type(module) for module in model.modules()}
    named = {found for found in classes if found.__name__ in BLOCKS}
    if not named:
        network = getattr(model, "network", model)
        undivided = set(getattr(network, "_no_split_modules", None) or ())
        named = {found for found in classes if found.__name__ in undivided}
    return tuple(sorted(named, key=lambda found: found.__name__))


def has_batch_norm(model: nn.Module) -> bool:
    """Return whether a layer computes statistics of the batch in training."""
    return any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())
