"""What both trainings start from: arguments, data, model and optimizer; and what they leave."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from network import build
from prepared_images import BadData, Description, Images, read, read_description

from allranks.errors import InputError, Problem


def arguments() -> argparse.Namespace:
    """The component's inputs and outputs, described in component.yaml."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, required=True)
    return parser.parse_args()


def data(folder: Path) -> tuple[Description, Images, Images]:
    """What the images are, the training and the validation set. Raises InputError where they cannot be read."""
    try:
        return read_description(folder), read(folder, "train"), read(folder, "validation")
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


def parts(args: argparse.Namespace, description: Description) -> tuple[Any, Any]:
    """The model and its optimizer, alike on every worker. Call it in the strategy's scope."""
    keras.utils.set_random_seed(args.seed)
    model = build(description.shape, len(description.classes), description.mean, description.std)
    optimizer = keras.optimizers.Adam(args.learning_rate)
    optimizer.build(model.trainable_variables)  # here, since variables cannot be made inside a step
    return model, optimizer


def apply_gradients(model: Any, optimizer: Any, pixels: Any, labels: Any, weights: Any, count: Any) -> Any:
    """One replica's part of a step: pixels (part, ...), labels and weights (part,); `count` images in the whole batch.

    Keras' optimizer sums the gradients over the replicas. Divided by the count of the whole batch, and not averaged
    over the replicas, they are those of one process, whoever has how many images. Returns this part's share of the
    mean loss.
    """
    with tf.GradientTape() as tape:
        scores = model(pixels, training=True)
        losses = keras.losses.sparse_categorical_crossentropy(labels, scores, from_logits=True)
        loss = tf.reduce_sum(weights * losses) / tf.cast(count, losses.dtype)
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


def accuracy(model: Any, images: Images, batch_size: int) -> float:
    """The share of the images that the model classifies right."""
    correct = 0
    for start in range(0, len(images), batch_size):
        pixels = tf.constant(images.pixels[start : start + batch_size])
        scores = np.asarray(model(pixels, training=False))
        correct += int((scores.argmax(axis=1) == images.labels[start : start + batch_size]).sum())
    return correct / len(images)


def save(model: Any, description: Description, folder: Path, *, validation_accuracy: float) -> None:
    """Write model.keras, and classifier.json about it."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")
    about = {"classes": list(description.classes), "validation_accuracy": validation_accuracy}
    (folder / "classifier.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
