"""Shared code of both trainings: arguments, data, model, optimizer, and the saved model."""

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
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, required=True)
    return parser.parse_args()


def data(folder: Path) -> tuple[Description, Images, Images]:
    """Return the description, the training set and the validation set. Raise InputError if they cannot be read."""
    try:
        return read_description(folder), read(folder, "train"), read(folder, "validation")
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


def parts(args: argparse.Namespace, description: Description) -> tuple[Any, Any]:
    """Return the model and its optimizer, identical on every worker. Call it in the strategy's scope."""
    keras.utils.set_random_seed(args.seed)
    model = build(description.shape, len(description.classes), description.mean, description.std)
    optimizer = keras.optimizers.Adam(args.learning_rate)
    optimizer.build(model.trainable_variables)  # here, since variables cannot be created in a step
    return model, optimizer


def apply_gradients(model: Any, optimizer: Any, pixels: Any, labels: Any, weights: Any, count: Any) -> Any:
    """Run one replica's part of a step, and return its share of the mean loss.

    pixels: (part, ...); labels, weights: (part,); count: images in the whole batch

    Keras' optimizer sums the gradients over the replicas. The loss is divided by the count of the whole batch, so the
    sum equals the gradient of one process, however the images are distributed.
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
    """Return the fraction of correctly classified images."""
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
