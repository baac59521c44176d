"""The training loop of all replicas."""

import os
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import optimization
import tensorflow as tf
from checkpoints import Checkpoints
from input_pipeline import Augmentation, Plan, training_data, validation_data
from presets import build
from replicas import Replicas
from saving import check_room, save

from allranks.contract import world
from allranks.contract.world import detect
from allranks.runtime.clean_exit import Evicted, Eviction
from allranks.runtime.ranks.machines import RankResources, machine_name, unique_machines
from allranks_steps.history import History, peak_memory
from allranks_steps.images.prepared_images import Description, Images, read_checked


@dataclass(frozen=True)
class Steps:
    """The compiled steps. Each takes a batch of every replica, and returns totals over the replicas.

    train:    also takes 1.0 in an evicted process and 0.0 in others; returns the mean loss, and a positive number if a
              process is evicted
    evaluate: returns the number of images that are classified correctly
    """

    train: Any
    evaluate: Any


def train(replicas: Replicas, args: Namespace) -> None:
    """Train, and write the outputs. Raise Evicted after a checkpoint if a process received SIGTERM."""
    world.require_all(detect())
    description, (images, validation) = read_checked(args.data, "train", "validation")
    plan = Plan(len(images), args.per_device_train_batch_size, replicas.count, args.seed)
    total = plan.total(args.num_train_epochs, args.max_steps)
    eviction = Eviction()
    optimization.set_precision(args)
    with replicas.strategy.scope():
        model, optimizer = make(args, description, total)
    replicas.broadcast_variables(model.variables)
    history = History("image")
    checkpoints = Checkpoints(
        args.checkpoints,
        model,
        optimizer,
        history,
        keep=args.save_total_limit,
        is_main=replicas.is_main,
        alone=replicas.saves_alone,
    )
    step = checkpoints.load(args.resume_from_checkpoint)
    check_room(args, model, optimizer)
    replicas.metrics.log_params({name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    steps = compiled(replicas, model, optimizer, args, len(description.classes))
    augmentation = Augmentation(args.max_shift, args.horizontal_flip)
    batches = replicas.iterate(lambda own: training_data(images, plan, augmentation, step, own))
    saved, before = step, None
    history.restart()
    while step < total:
        result = steps.train(next(batches), tf.constant(float(eviction.requested)))
        step += 1
        history.count(plan.batch * plan.replicas)
        epoch = (step - 1) // plan.steps_per_epoch
        # The step before: a device works on this one meanwhile. All processes have the same sum.
        evicted = before is not None and float(before[1]) > 0
        before = result
        if due(step, args.logging_steps, total):
            loss = float(result[0])
            point = history.add(step, loss, peak_memory())
            rate = optimization.learning_rate(optimizer, step - 1)
            values = {"train_loss": loss, "learning_rate": rate, "step_seconds": point.seconds}
            replicas.metrics.log(values, step=step, total=total, epoch=epoch)
        if evicted and step < total:
            checkpoints.save(step)
            checkpoints.close()
            replicas.wait_for_all()  # mpirun ends the others when the first one exits: they may still be saving
            raise Evicted
        if due(step, args.save_steps, total):
            checkpoints.save(step)
            saved = step
        if due(step, args.eval_steps or plan.steps_per_epoch, total):
            with history.paused():
                accuracy = evaluate(replicas, steps, validation, args.per_device_eval_batch_size)
            replicas.metrics.log({"validation_accuracy": accuracy}, step=step, total=total, epoch=epoch)
            if replicas.is_main:
                print(f"step {step} of {total}: validation accuracy {accuracy:.4f}", flush=True)
    if saved < step:
        checkpoints.save(step)
    checkpoints.close()
    write(replicas, args, description, model, history, samples=plan.batch * plan.replicas)


def due(step: int, every: int, total: int) -> bool:
    return step == total or step % every == 0


def make(args: Namespace, description: Description, total: int) -> tuple[Any, Any]:
    """Return the model and its optimizer, the same in every process. Call it in the strategy's scope."""
    keras.utils.set_random_seed(args.seed)
    model = new_model(args, description)
    return model, optimization.make(args, model.trainable_variables, total)


def new_model(args: Namespace, description: Description) -> Any:
    classes = len(description.classes)
    return build(args.preset, description.shape, classes, description.mean, description.std, args.image_size)


def compiled(replicas: Replicas, model: Any, optimizer: Any, args: Namespace, class_count: int) -> Steps:
    """Return the steps as graphs. They have no control flow in Python, which AutoGraph would search for during
    seconds."""
    variables = model.trainable_variables

    def train_replica(pixels: tf.Tensor, labels: tf.Tensor, evicted: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = model(pixels, training=True)
            # Of the whole batch, so that the sum over the replicas is the mean.
            loss = mean_loss(scores, labels, class_count, args.label_smoothing_factor) / replicas.count
            scaled = optimization.scaled(optimizer, loss)
        gradients = replicas.sum_gradients(tape.gradient(scaled, variables))
        optimization.apply(optimizer, gradients, variables)
        return tf.stack([tf.cast(loss, tf.float32), evicted])

    def evaluate_replica(pixels: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        predicted = tf.argmax(model(pixels, training=False), axis=1)
        return tf.reduce_sum(weights * tf.cast(predicted == labels, tf.float32))

    def train_all(batch: tuple[tf.Tensor, ...], evicted: tf.Tensor) -> tf.Tensor:
        return replicas.total(replicas.run(train_replica, (*batch, evicted)))

    def evaluate_all(batch: tuple[tf.Tensor, ...]) -> tf.Tensor:
        return replicas.total(replicas.run(evaluate_replica, batch))

    return Steps(tf.function(train_all, autograph=False), tf.function(evaluate_all, autograph=False))


def mean_loss(scores: tf.Tensor, labels: tf.Tensor, class_count: int, smoothing: float) -> tf.Tensor:
    """Return the mean cross-entropy. scores: (images, classes); labels: (images,)"""
    targets = tf.one_hot(labels, class_count) * (1 - smoothing) + smoothing / class_count
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, scores))


def evaluate(replicas: Replicas, steps: Steps, images: Images, batch: int) -> float:
    """Return the fraction of correctly classified images, each counted once. Every process must call it."""
    count = 0

    def own_data(own: Any) -> tf.data.Dataset:
        nonlocal count
        dataset, count = validation_data(images, batch, replicas.count, own)
        return dataset

    batches = replicas.iterate(own_data)
    return sum(float(steps.evaluate(next(batches))) for _ in range(count)) / len(images)


def write(
    replicas: Replicas, args: Namespace, description: Description, model: Any, history: History, *, samples: int
) -> None:
    """Write the model and the history. samples: images of a step, over all replicas"""
    weights = [np.asarray(variable) for variable in model.variables]
    if not replicas.is_main:
        return
    keras.mixed_precision.set_global_policy("float32")
    trained = new_model(args, description)
    for variable, value in zip(trained.variables, weights, strict=True):
        variable.assign(value)
    save(trained, description, args.model, preset=args.preset)
    resources = [RankResources(machine_name(), frozenset(os.sched_getaffinity(0)), None)]
    about = {
        "strategy": replicas.name,
        "launcher": replicas.launcher,
        "world_size": replicas.count,
        "instance_count": replicas.world_size,
        "device": "cuda" if tf.config.list_physical_devices("GPU") else "cpu",
        # The instances may share a machine, so that only a measurement with one of them names it.
        "machines": unique_machines(resources) if replicas.world_size == 1 else [],
        "parameters": int(trained.count_params()),
        "samples_per_step": samples,
    }
    history.write(args.history, about)
