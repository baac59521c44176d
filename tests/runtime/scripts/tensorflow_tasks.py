"""The tasks of a TensorFlow training add up their ranks; after the first step, task argv[1] ends as argv[2]."""

import os
import signal
import sys

import tensorflow as tf

from allranks.runtime import tensorflow

WAYS = {
    "return": lambda: None,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "fail": lambda: int("the loss is nan"),
}


def train(training: tensorflow.Training) -> None:
    who, way, *_ = [*sys.argv[1:], "", ""]

    total = 0.0
    for step in range(1, 4):
        value = tf.constant(float(training.rank + step))
        total = float(training.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None))
        training.metrics.log({"total": total}, step=step)
        if f"{training.role}-{training.rank}" == who:
            WAYS[way]()
    print(training.rank, training.world_size, training.role, training.is_main, total)


if __name__ == "__main__":
    tensorflow.main(train, timeout_seconds=float(os.environ.get("TIMEOUT", "60")))
