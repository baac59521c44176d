"""The images of each step, by tf.data, for any division of a batch over replicas, and from any step."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from allranks_steps.images.prepared_images import Images
from allranks_steps.messages import bad_input

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """The steps of a training. An epoch has each image at most once, in its own order; images that do not fill a step
    are skipped.

    count:    training images
    batch:    images of a replica in a step
    replicas: devices that share a step
    """

    count: int
    batch: int
    replicas: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        return self.count // (self.batch * self.replicas)

    def total(self, num_train_epochs: int, max_steps: int) -> int:
        """Return the number of steps. Raise InputError if there are too few images for one."""
        if not self.steps_per_epoch:
            found = f"{self.batch} on each of {self.replicas} devices, of {self.count} images"
            fix = "give a smaller batch, fewer devices or more images"
            raise bad_input("input per_device_train_batch_size", found, "a batch that can be filled", fix)
        return max_steps if max_steps > 0 else num_train_epochs * self.steps_per_epoch

    def parts(self, start: int, replicas: Sequence[int]) -> Iterator[tuple[Indices, int]]:
        """Yield the images of these replicas in turn, endlessly from step `start`, and the seed of each part."""
        epoch, step = divmod(start, self.steps_per_epoch)
        while True:
            order = np.random.default_rng((self.seed, epoch)).permutation(self.count)
            for number in range(step, self.steps_per_epoch):
                for replica in replicas:
                    part = number * self.replicas + replica
                    yield order[part * self.batch : (part + 1) * self.batch], epoch * self.count + part
            epoch, step = epoch + 1, 0


@dataclass(frozen=True)
class Augmentation:
    """Random changes of training images: shifted by up to max_shift pixels, and mirrored."""

    max_shift: int
    horizontal_flip: bool

    def __call__(self, pixels: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
        """Return changed pixels. The same seed gives the same."""
        generator = np.random.default_rng((2, seed))
        count, _, height, width = pixels.shape
        if self.max_shift:
            edge = (self.max_shift, self.max_shift)
            windows = sliding_window_view(np.pad(pixels, ((0, 0), (0, 0), edge, edge)), (height, width), axis=(2, 3))
            down, right = generator.integers(0, 2 * self.max_shift + 1, (2, count))
            pixels = windows[np.arange(count), :, down, right]
        if self.horizontal_flip:
            mirrored: NDArray[np.bool_] = np.less(generator.random(count), 0.5)
            pixels = np.where(mirrored[:, None, None, None], pixels[..., ::-1], pixels)
        return np.ascontiguousarray(pixels)


def training_data(
    images: Images, plan: Plan, augmentation: Augmentation, start: int, replicas: Sequence[int]
) -> tf.data.Dataset:
    """Return the endless batches of these replicas, in turn: pixels and labels. start: the first step"""
    parts = tf.data.Dataset.from_generator(
        lambda: plan.parts(start, replicas),
        output_signature=(tf.TensorSpec([plan.batch], tf.int64), tf.TensorSpec([], tf.int64)),
    )

    def load(indices: Indices, seed: np.int64) -> tuple[NDArray[np.uint8], Indices]:
        return augmentation(np.take(images.pixels, indices, axis=0), int(seed)), np.take(images.labels, indices)

    return _loaded(parts, load, images, plan.batch).apply(
        # Otherwise several workers would ask each other in each step whether there is another batch.
        tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY)
    )


def validation_data(images: Images, batch: int, world: int, replicas: Sequence[int]) -> tuple[tf.data.Dataset, int]:
    """Return the batches of these replicas, in turn, and the number of steps: pixels, labels and weights.

    Every image is in one batch with weight 1. An image with weight 0 fills a batch.
    """
    steps = -(-len(images) // (batch * world))

    def parts() -> Iterator[tuple[Indices, NDArray[np.float32]]]:
        for step in range(steps):
            for replica in replicas:
                start = (step * world + replica) * batch
                indices = np.arange(start, start + batch)
                yield np.where(indices < len(images), indices, 0), (indices < len(images)).astype(np.float32)

    dataset = tf.data.Dataset.from_generator(
        parts, output_signature=(tf.TensorSpec([batch], tf.int64), tf.TensorSpec([batch], tf.float32))
    )

    def load(indices: Indices, weights: NDArray[np.float32]) -> tuple[Any, ...]:
        return np.take(images.pixels, indices, axis=0), np.take(images.labels, indices), weights

    return _loaded(dataset, load, images, batch, tf.TensorSpec([batch], tf.float32)).repeat(), steps


def _loaded(
    parts: tf.data.Dataset, load: Callable[..., Any], images: Images, batch: int, *more: tf.TensorSpec
) -> tf.data.Dataset:
    specs = (tf.TensorSpec([batch, *images.pixels.shape[1:]], tf.uint8), tf.TensorSpec([batch], tf.int64), *more)

    def loaded(*part: tf.Tensor) -> tuple[tf.Tensor, ...]:
        tensors = tf.numpy_function(load, part, [spec.dtype for spec in specs])
        for tensor, spec in zip(tensors, specs, strict=True):
            tensor.set_shape(spec.shape)
        return tuple(tensors)

    return parts.map(loaded, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
