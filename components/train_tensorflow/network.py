"""The network: from integer pixels to one score for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras


def build(shape: tuple[int, int, int], class_count: int, mean: Sequence[float], std: Sequence[float]) -> Any:
    """Return a network of two convolutions and a hidden layer, with built-in normalisation.

    shape: channels, height, width; mean, std: of the training pixels as fractions of 255, one for each channel

    It maps pixels (batch, channels, height, width), 0 to 255, to scores (batch, class_count), before softmax.
    """
    channels, height, width = shape
    layers = keras.layers
    pixels = keras.Input((channels, height, width), name="pixels")
    values = layers.Permute((2, 3, 1))(pixels)  # TensorFlow's convolutions on a CPU need channels last
    values = layers.Normalization(mean=[255 * m for m in mean], variance=[(255 * s) ** 2 for s in std])(values)
    values = layers.Conv2D(16, 3, padding="same", activation="relu")(values)
    values = layers.MaxPooling2D(2)(values)
    values = layers.Conv2D(32, 3, padding="same", activation="relu")(values)
    values = layers.Flatten()(values)
    values = layers.Dense(64, activation="relu")(values)
    return keras.Model(pixels, layers.Dense(class_count, name="scores")(values), name="image_classifier")
