"""Score a TensorFlow model on images, divided over the ranks. Each image is counted once."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allranks import runtime
from allranks.errors import InputError
from allranks.runtime import sockets
from allranks_steps.images.prepared_images import Description, Images, read_checked
from allranks_steps.images.scores import Counts, report
from allranks_steps.messages import bad_input, first_line
from allranks_steps.models.mlmodel import load_model, read_mlmodel

FIX = "give the output `model` of train_tensorflow, or another model that does the same"


def evaluate(ranks: sockets.Ranks) -> None:
    args = runtime.arguments()
    description, (images,) = read_checked(args.data, args.split)
    own_gpu(ranks)
    model = load(args.model, description)
    own = np.arange(ranks.rank, len(images), ranks.world_size)
    confusion, sums = count(model, images, own, len(description.classes), args.per_device_eval_batch_size)
    matrices, totals = ranks.gather_arrays(confusion), ranks.gather_arrays(sums)
    if matrices is None or totals is None:
        return
    counts = Counts.from_matrix(np.sum(matrices, axis=0), *np.sum(totals, axis=0).tolist())
    metrics = report(
        args.metrics,
        counts,
        split=args.split,
        source=description.source,
        classes=description.classes,
        metrics=ranks.metrics,
    )
    print(f"{args.split} accuracy {metrics['accuracy']:.4f} on {metrics['count']} images", flush=True)


def own_gpu(ranks: sockets.Ranks) -> None:
    """Restrict this rank to its own GPU, if the instance has one for each of its ranks."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) >= ranks.env.local_world_size:
        tf.config.set_visible_devices(gpus[ranks.env.local_rank], "GPU")
    elif ranks.env.local_world_size > 1:
        tf.config.threading.set_intra_op_parallelism_threads(ranks.threads)


def load(folder: Path, description: Description) -> Any:
    """Return the model of an MLflow folder. Raise InputError if it does not take these images."""
    import mlflow.tensorflow

    read_mlmodel(folder, fix=FIX, flavor="tensorflow")
    model = load_model(mlflow.tensorflow, folder, fix=FIX)
    try:
        found = np.asarray(model(np.zeros((2, *description.shape), np.uint8)))
    except Exception as error:  # whatever the model raises for pixels that are not its own
        expected = f"a model that takes the pixels of these images: uint8 of shape {(-1, *description.shape)}"
        raise _problem(f"it fails on pixels: {first_line(error)}", expected) from error
    if found.shape != (2, len(description.classes)):
        expected = f"a score for each of the {len(description.classes)} classes of the data"
        raise _problem(f"for 2 images it gives numbers of shape {found.shape}", expected)
    return model


def count(
    model: Any, images: Images, own: NDArray[np.int64], classes: int, batch: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the confusion matrix of these images, rows by true class and columns by predicted class; and the sum of
    their losses and how many have their class among the five best."""
    import tensorflow as tf

    confusion, sums = np.zeros(classes * classes, np.int64), np.zeros(2)

    def score(pixels: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, ...]:
        found = tf.cast(model(pixels, training=False), tf.float32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, found)
        five = tf.math.in_top_k(labels, found, min(5, classes))
        return tf.argmax(found, axis=1), tf.reduce_sum(losses), tf.math.count_nonzero(five)

    compiled = tf.function(score, reduce_retracing=True)
    for start in range(0, len(own), batch):
        indices = own[start : start + batch]
        pixels, labels = np.take(images.pixels, indices, axis=0), np.take(images.labels, indices)
        predicted, loss, five = compiled(tf.constant(pixels), tf.constant(labels))
        confusion += np.bincount(labels * classes + predicted.numpy(), minlength=classes * classes)
        sums += [float(loss), float(five)]
    return confusion.reshape(classes, classes), sums


def _problem(found: str, expected: str) -> InputError:
    return bad_input("input model", found, expected, FIX)


if __name__ == "__main__":
    sockets.main(evaluate)
