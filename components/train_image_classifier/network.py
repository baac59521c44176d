"""The networks that can be trained, each from integer pixels to one score for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


class ImageClassifier(nn.Module):
    """A network with built-in normalisation, so that callers pass raw pixels and cannot scale them wrongly."""

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", 255 * torch.tensor(mean).reshape(-1, 1, 1))
        self.register_buffer("std", 255 * torch.tensor(std).reshape(-1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        """Return scores (batch, classes), before softmax. pixels: (batch, channels, height, width), 0 to 255."""
        scores: Tensor = self.network((pixels.float() - self.mean) / self.std)
        return scores


def mlp(shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """Return an MLP with two hidden layers of 256: the fastest network, sufficient for digits."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * height * width, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, class_count),
    )


def cnn(shape: tuple[int, int, int], class_count: int) -> nn.Module:
    """Return a CNN with five convolutions in three widths, for images of at least 8 x 8 pixels."""
    return nn.Sequential(
        convolution(shape[0], 32),
        convolution(32, 32),
        nn.MaxPool2d(2),
        convolution(32, 64),
        convolution(64, 64),
        nn.MaxPool2d(2),
        convolution(64, 128),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, class_count),
    )


def convolution(inputs: int, outputs: int) -> nn.Module:
    # Not BatchNorm: batch statistics would change with the number of ranks that share a batch.
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False), nn.GroupNorm(8, outputs), nn.ReLU()
    )


NETWORKS: dict[str, Callable[[tuple[int, int, int], int], nn.Module]] = {"mlp": mlp, "cnn": cnn}
"""Networks by name, made from an image's shape and the number of classes."""
