"""Train an image classifier with TensorFlow's parameter servers: workers run steps asynchronously."""

from __future__ import annotations

from collections import deque

import numpy as np
import tensorflow as tf
from batches import steps
from setting import accuracy, apply_gradients, arguments, data, parts, save

from allranks.errors import InputError, Problem
from allranks.runtime import tensorflow

LOG_EVERY = 10
"""Steps between two points of the loss curve."""

AHEAD = 2
"""Steps scheduled ahead for each worker: enough to keep it busy, with few images in memory."""


def train(training: tensorflow.Training) -> None:
    if training.coordinator is None:
        raise InputError(
            Problem(
                where="distribution",
                found="no parameter server",
                expected="the tensorflow distribution with at least 2 workers and 1 parameter server",
                fix="set distribution.parameter_server_count, or use the component train_tensorflow",
            )
        )
    args = arguments()
    description, images, validation = data(args.data)
    with training.strategy.scope():
        model, optimizer = parts(args, description)

    @tf.function(reduce_retracing=True)
    def step(pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        weights, count = tf.ones(tf.shape(labels)), tf.shape(labels)[0]
        return training.strategy.run(
            lambda *inputs: apply_gradients(model, optimizer, *inputs), args=(pixels, labels, weights, count)
        )

    plan = steps(len(images), batch_size=args.batch_size, epochs=args.epochs, seed=args.seed)
    waiting: deque[tuple[int, int, object]] = deque()

    def finish_one() -> None:
        number, epoch, remote = waiting.popleft()
        loss = remote.fetch()
        if number % LOG_EVERY == 0 or number == len(plan):
            training.metrics.log({"train_loss": float(np.asarray(loss))}, step=number, total=len(plan), epoch=epoch)

    for number, (epoch, indices) in enumerate(plan, start=1):
        batch = (tf.constant(images.pixels[indices]), tf.constant(images.labels[indices]))
        waiting.append((number, epoch, training.coordinator.schedule(step, args=batch)))
        if len(waiting) >= AHEAD * training.world_size:
            finish_one()
    while waiting:
        finish_one()
    training.coordinator.join()

    reached = accuracy(model, validation, args.batch_size)
    training.metrics.log({"validation_accuracy": reached}, step=len(plan), total=len(plan))
    print(f"{training.world_size} workers: validation accuracy {reached:.4f}")
    save(model, description, args.model, validation_accuracy=reached)


if __name__ == "__main__":
    tensorflow.main(train)
