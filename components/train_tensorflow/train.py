"""Train an image classifier with TensorFlow, on all workers of a launch or in one process."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from batches import share, steps
from setting import accuracy, apply_gradients, arguments, data, parts, save

from allranks.runtime import tensorflow

LOG_EVERY = 10
"""Steps between two points of the loss curve."""


def train(training: tensorflow.Training) -> None:
    args = arguments()
    description, images, validation = data(args.data)
    strategy = training.strategy
    with strategy.scope():
        model, optimizer = parts(args, description)
    plan = steps(len(images), batch_size=args.batch_size, epochs=args.epochs, seed=args.seed)
    replicas = strategy.num_replicas_in_sync
    local_replicas = replicas // training.world_size

    def part(indices: np.ndarray, context: tf.distribute.experimental.ValueContext) -> tuple[tf.Tensor, ...]:
        own, weights = share(indices, context.replica_id_in_sync_group, replicas)
        return tf.constant(images.pixels[own]), tf.constant(images.labels[own]), tf.constant(weights)

    @tf.function(reduce_retracing=True)
    def step_on_all(inputs: tuple[tf.Tensor, ...], count: tf.Tensor) -> tf.Tensor:
        losses = strategy.run(lambda own, n: apply_gradients(model, optimizer, *own, n), args=(inputs, count))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    for number, (epoch, indices) in enumerate(plan, start=1):
        inputs = strategy.experimental_distribute_values_from_function(lambda context, i=indices: part(i, context))
        loss = step_on_all(inputs, tf.constant(len(indices)))
        if number % LOG_EVERY == 0 or number == len(plan):
            training.metrics.log({"train_loss": float(loss)}, step=number, total=len(plan), epoch=epoch)

    if training.is_main:
        reached = accuracy(model, validation, args.batch_size)
        training.metrics.log({"validation_accuracy": reached}, step=len(plan), total=len(plan))
        print(f"{training.world_size} workers, {local_replicas} replicas each: validation accuracy {reached:.4f}")
        save(model, description, args.model, validation_accuracy=reached)


if __name__ == "__main__":
    tensorflow.main(train)
