"""The architectures that can be trained by name. A new preset is one entry in `PRESETS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformers import ConvNextV2Config, PretrainedConfig, ResNetConfig, SwinConfig, ViTConfig

from allranks_steps.messages import bad_input


@dataclass(frozen=True)
class Preset:
    """An image model of Transformers.

    config:   the class of its configuration
    values:   keyword arguments of the configuration
    smallest: minimum height and width of images in pixels
    multiple: divisor of the height and width
    enlarges: whether smaller images are enlarged to `smallest` instead of refused
    """

    config: Callable[..., PretrainedConfig]
    values: Mapping[str, Any] = field(default_factory=dict)
    smallest: int = 32
    multiple: int = 1
    enlarges: bool = False


def _vit(hidden_size: int, num_hidden_layers: int, num_attention_heads: int) -> Preset:
    values = {
        "hidden_size": hidden_size,
        "num_hidden_layers": num_hidden_layers,
        "num_attention_heads": num_attention_heads,
        "intermediate_size": 4 * hidden_size,
        "patch_size": 16,
    }
    return Preset(ViTConfig, values, smallest=16, multiple=16)


# Sizes: He et al. 2015 (ResNet), Woo et al. 2023 (ConvNeXt V2), Dosovitskiy et al. 2020 and Touvron et al. 2020 (ViT),
# Liu et al. 2021 (Swin).
PRESETS: Mapping[str, Preset] = {
    # 79,000 parameters: learns digits of 8 x 8 pixels in seconds on a CPU.
    "resnet_micro": Preset(
        ResNetConfig,
        {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1], "layer_type": "basic"},
        smallest=16,
        enlarges=True,
    ),
    # 56,000 parameters. No layer computes statistics of a batch, so the result does not depend on the number of ranks.
    "convnextv2_micro": Preset(
        ConvNextV2Config,
        {"patch_size": 1, "num_stages": 2, "hidden_sizes": [32, 64], "depths": [1, 1]},
        smallest=8,
        multiple=2,
    ),
    "resnet18": Preset(
        ResNetConfig, {"hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "layer_type": "basic"}
    ),
    "resnet50": Preset(ResNetConfig),
    "convnextv2_tiny": Preset(ConvNextV2Config, multiple=32),
    "convnextv2_base": Preset(
        ConvNextV2Config, {"hidden_sizes": [128, 256, 512, 1024], "depths": [3, 3, 27, 3]}, multiple=32
    ),
    "vit_small": _vit(384, 12, 6),
    "vit_base": _vit(768, 12, 12),
    "vit_large": _vit(1024, 24, 16),
    "swin_tiny": Preset(SwinConfig, multiple=32),
    "swin_base": Preset(
        SwinConfig, {"embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}, multiple=32
    ),
}


def network_size(name: str, image_size: int, images: tuple[int, int] | None) -> tuple[int, int]:
    """Return the height and width of the images inside of the network.

    image_size: the parameter; 0 for the size of the images
    images:     height and width of the images; None if they differ

    Raise InputError if the preset does not take images of that size.
    """
    preset = PRESETS[name]
    if image_size:
        size = (image_size, image_size)
    elif images is None:
        size = (224, 224)
    else:
        size = images
        if preset.enlarges and min(size) < preset.smallest:
            factor = -(-preset.smallest // min(size))
            size = (factor * size[0], factor * size[1])
    if min(size) < preset.smallest or any(side % preset.multiple for side in size):
        multiple = f", and a multiple of {preset.multiple}" if preset.multiple > 1 else ""
        raise bad_input(
            "input model" if image_size == 0 else "input image_size",
            f"{name} with images of {size[0]} x {size[1]} pixels",
            f"a height and a width of at least {preset.smallest}{multiple}",
            "set image_size, to which the images are resized, or choose another model",
        )
    return size


def configuration(
    name: str, size: tuple[int, int], channels: int, classes: tuple[str, ...], drop_path_rate: float | None = None
) -> PretrainedConfig:
    """Return the configuration of a preset for images of this height, width and number of channels.

    drop_path_rate: None for the architecture's default

    Raise InputError if the architecture has no stochastic depth, and a rate is set."""
    preset = PRESETS[name]
    values = dict(preset.values)
    if preset.config is not ResNetConfig:
        values["image_size"] = size[0] if size[0] == size[1] else size
    if drop_path_rate is not None:
        values["drop_path_rate"] = drop_path_rate
    config = preset.config(num_channels=channels, **labels(classes), **values)
    if drop_path_rate is not None:
        require_stochastic_depth(drop_path_rate, config)
    return config


def require_stochastic_depth(drop_path_rate: float, config: PretrainedConfig) -> None:
    """Raise InputError if the architecture has no stochastic depth, and a rate is set."""
    if drop_path_rate and "drop_path_rate" not in type(config)().to_dict():
        raise bad_input(
            "input drop_path_rate",
            f"{drop_path_rate}, and a model of the type {config.model_type} has no stochastic depth",
            "a ConvNeXt V2 or Swin model",
            "leave drop_path_rate out, or choose such a model",
        )


def labels(classes: tuple[str, ...]) -> dict[str, Any]:
    """Return the classes as keyword arguments of a configuration."""
    return {
        "num_labels": len(classes),
        "id2label": dict(enumerate(classes)),
        "label2id": {name: number for number, name in enumerate(classes)},
    }
