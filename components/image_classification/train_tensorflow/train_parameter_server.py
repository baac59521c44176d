"""Train an image classifier with TensorFlow's parameter servers: workers run steps asynchronously."""

from collections import deque
from typing import Any

import numpy as np
import optimization
import tensorflow as tf
from checkpoints import Checkpoints
from input_pipeline import Plan
from loop import due, make, mean_loss, write
from replicas import MirroredReplicas
from saving import check_room
from worker_data import check_shares, worker_data

from allranks import runtime
from allranks.runtime import tensorflow
from allranks.runtime.clean_exit import Evicted, Eviction
from allranks_steps.history import History, peak_memory
from allranks_steps.images.prepared_images import Images, read_checked
from allranks_steps.messages import bad_input

AHEAD = 4
"""Steps scheduled ahead for each worker, which keep it busy."""


def train(training: tensorflow.Training) -> None:
    args = runtime.arguments()
    check(training)
    description, (images, validation) = read_checked(args.data, "train", "validation")
    # A step is a batch of one worker.
    plan = Plan(len(images), args.per_device_train_batch_size, 1, args.seed)
    total = plan.total(args.num_train_epochs, args.max_steps)
    check_shares(len(images), plan.batch, training.world_size)
    eviction = Eviction()
    optimization.set_precision(args, scales_loss=False)
    with training.strategy.scope():
        model, optimizer = make(args, description, total)
    history = History("image")
    checkpoints = Checkpoints(args.checkpoints, model, optimizer, history, keep=args.save_total_limit, is_main=True)
    step = checkpoints.load(args.resume_from_checkpoint)
    check_room(args, model, optimizer)
    classes = len(description.classes)

    def train_step(batches: Any) -> tf.Tensor:
        def replica(pixels: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                scores = model(pixels, training=True)
                loss = mean_loss(scores, labels, classes, args.label_smoothing_factor)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimization.apply(optimizer, gradients, model.trainable_variables)
            return loss

        return training.strategy.run(replica, args=next(batches))

    worker_step = tf.function(train_step, autograph=False)

    def own_share() -> tf.data.Dataset:
        # TensorFlow traces this function once for all workers, so that only a tensor can tell them apart.
        share = tf.distribute.coordinator.experimental_get_current_worker_index()
        return worker_data(
            args.data,
            images,
            plan.batch,
            args.seed + step,  # a resumed training has another order
            shares=training.world_size,
            share=share,
            horizontal_flip=args.horizontal_flip,
        )

    batches = iter(training.coordinator.create_per_worker_dataset(own_share))
    waiting: deque[Any] = deque()

    def finish_one() -> None:
        nonlocal step
        loss = float(np.asarray(waiting.popleft().fetch()))
        step += 1
        history.count(plan.batch)
        if due(step, args.logging_steps, total):
            history.add(step, loss, peak_memory())
            training.metrics.log({"train_loss": loss}, step=step, total=total)

    begun = step
    history.restart()
    while begun < total and not eviction.requested:
        waiting.append(training.coordinator.schedule(worker_step, args=(batches,)))
        begun += 1
        if len(waiting) >= AHEAD * training.world_size:
            finish_one()
        if begun < total and begun % args.save_steps == 0:
            _finish(waiting, finish_one)
            checkpoints.save(step)
    _finish(waiting, finish_one)
    training.coordinator.join()
    checkpoints.save(step)
    if step < total:
        raise Evicted
    reached = accuracy(model, validation, args.per_device_eval_batch_size)
    training.metrics.log({"validation_accuracy": reached}, step=total, total=total)
    print(f"{training.world_size} workers trained: validation accuracy {reached:.4f}", flush=True)
    write(MirroredReplicas(training), args, description, model, history, samples=plan.batch)


def _finish(waiting: deque[Any], finish_one: Any) -> None:
    while waiting:
        finish_one()


def check(training: tensorflow.Training) -> None:
    """Raise InputError if there is no parameter server."""
    if training.coordinator is None:
        raise bad_input(
            "distribution",
            "no parameter server",
            "the tensorflow distribution with at least 2 workers and 1 parameter server",
            "set distribution.parameter_server_count, or use the component train_tensorflow",
        )


def accuracy(model: Any, images: Images, batch_size: int) -> float:
    """Return the fraction of correctly classified images."""
    correct = 0
    for start in range(0, len(images), batch_size):
        scores = np.asarray(model(tf.constant(images.pixels[start : start + batch_size]), training=False))
        correct += int((scores.argmax(axis=1) == images.labels[start : start + batch_size]).sum())
    return correct / len(images)


if __name__ == "__main__":
    tensorflow.main(train)
