"""The images of a worker under parameter servers. Its pipeline reads them without Python code."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from allranks_steps.images.prepared_images import Images
from allranks_steps.messages import bad_input

SHUFFLED = 100_000
"""Size of a worker's shuffle buffer in images."""


def worker_data(
    folder: Path, images: Images, batch: int, seed: int, *, shares: int, share: Any, horizontal_flip: bool
) -> tf.data.Dataset:
    """Return endless batches of pixels and labels of one share of the images, in a new order in each epoch.

    folder:        of the prepared images, at the same path on every instance
    shares, share: number of workers, and the number of this one, from 0, which may be a tensor: it reads the images
                   share, share + shares, ...
    """
    count, *shape = images.pixels.shape

    def read() -> tf.data.Dataset:
        pixels = _records(folder / "train_pixels.npy", count, int(np.prod(shape)))
        labels = _records(folder / "train_labels.npy", count, images.labels.itemsize)
        return tf.data.Dataset.zip((pixels, labels)).shard(shares, share)

    def decode(pixels: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        decoded = tf.reshape(tf.io.decode_raw(pixels, tf.uint8), [batch, *shape])
        if horizontal_flip:
            mirrored = tf.random.uniform([batch, 1, 1, 1]) < 0.5
            decoded = tf.where(mirrored, tf.reverse(decoded, [3]), decoded)
        return decoded, tf.reshape(tf.io.decode_raw(labels, tf.int64), [batch])

    buffer = min(-(-count // shares), SHUFFLED)
    shuffled = read().shuffle(buffer, seed=seed, reshuffle_each_iteration=True).repeat()
    return shuffled.batch(batch, drop_remainder=True).map(decode, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def check_shares(count: int, batch: int, workers: int) -> None:
    """Raise InputError if a worker's share of the images does not fill a batch."""
    if count // workers < batch:
        found = f"{batch}, while each of {workers} workers has {count // workers} of the {count} images"
        fix = "give a smaller batch, fewer workers or more images"
        raise bad_input("input per_device_train_batch_size", found, "a batch that a share can fill", fix)


def _records(file: Path, count: int, size: int) -> tf.data.Dataset:
    """Return the items of a NumPy file: after its header, as many bytes each."""
    header = file.stat().st_size - count * size
    return tf.data.FixedLengthRecordDataset(str(file), size, header_bytes=header)
