"""The architectures that can be trained by name. A new preset is one entry in `PRESETS`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras

from allranks_steps.messages import bad_input

layers = keras.layers


@dataclass(frozen=True)
class Preset:
    """A network.

    build:    from images (batch, height, width, channels), already normalised, and the number of classes to scores
    smallest: height and width in pixels of the smallest images that it takes
    """

    build: Callable[[Any, int], Any]
    smallest: int


def _resnet_micro(images: Any, class_count: int) -> Any:
    """79,000 parameters: learns digits of 8 x 8 pixels in seconds on a CPU.

    It normalises by groups of channels, so that its result does not depend on how a batch is divided over the ranks.
    """
    values = _convolution(images, 32, strides=1)
    for width, strides in ((32, 1), (64, 2)):
        shortcut = values if strides == 1 else layers.Conv2D(width, 1, strides=strides, use_bias=False)(values)
        values = _convolution(values, width, strides=strides)
        values = layers.Conv2D(width, 3, padding="same", use_bias=False)(values)
        values = layers.Activation("relu")(layers.Add()([layers.GroupNormalization(8)(values), shortcut]))
    values = layers.GlobalAveragePooling2D()(values)
    # The scores are of float32, also where the rest computes in 16 bits.
    return layers.Dense(class_count, dtype="float32", name="scores")(values)


def _convolution(values: Any, width: int, strides: int) -> Any:
    values = layers.Conv2D(width, 3, strides=strides, padding="same", use_bias=False)(values)
    return layers.Activation("relu")(layers.GroupNormalization(8)(values))


def _application(name: str, **options: Any) -> Callable[[Any, int], Any]:
    """Return the builder of one of Keras' own networks, with random weights."""

    def build(images: Any, class_count: int) -> Any:
        body = getattr(keras.applications, name)(
            include_top=False, weights=None, input_shape=tuple(images.shape[1:]), pooling="avg", **options
        )
        return layers.Dense(class_count, dtype="float32", name="scores")(body(images))

    return build


PRESETS: Mapping[str, Preset] = {
    "resnet_micro": Preset(_resnet_micro, 8),
    "mobilenet_v2": Preset(_application("MobileNetV2"), 32),
    "resnet50": Preset(_application("ResNet50"), 32),
    "efficientnetv2_s": Preset(_application("EfficientNetV2S", include_preprocessing=False), 32),
    "convnext_tiny": Preset(_application("ConvNeXtTiny", include_preprocessing=False), 32),
}


def build(
    name: str,
    shape: tuple[int, int, int],
    class_count: int,
    mean: Sequence[float],
    std: Sequence[float],
    image_size: int = 0,
) -> Any:
    """Return a Keras model of a preset, with built-in resizing and normalisation.

    shape:      channels, height, width
    mean, std:  of each channel, as fractions of 255
    image_size: height and width in pixels that the network computes with; 0 for those of the images

    It maps pixels (batch, channels, height, width), 0 to 255, to scores (batch, class_count) of float32, before
    softmax. Raise InputError if the preset does not take images of that size.
    """
    preset = PRESETS[name]
    channels, height, width = shape
    if (image_size or min(height, width)) < preset.smallest:
        raise bad_input(
            "input image_size" if image_size else "input preset",
            f"{name} with images of {image_size or height} x {image_size or width} pixels",
            f"a height and a width of at least {preset.smallest}",
            "set image_size, to which the images are resized, or choose another preset",
        )
    pixels = keras.Input((channels, height, width), dtype="uint8", name="pixels")
    # TensorFlow's convolutions on a CPU need the channels last.
    images = layers.Permute((2, 3, 1), dtype="float32")(layers.Rescaling(1.0, dtype="float32")(pixels))
    images = layers.Normalization(
        mean=[255 * value for value in mean], variance=[(255 * value) ** 2 for value in std], dtype="float32"
    )(images)
    if image_size:
        images = layers.Resizing(image_size, image_size, dtype="float32")(images)
    return keras.Model(pixels, preset.build(images, class_count), name="image_classifier")
