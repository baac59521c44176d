"""TensorFlow's all-reduce over the workers, one per instance."""

import tensorflow as tf
from place import tell

from allranks.runtime import tensorflow


def train(training: tensorflow.Training) -> None:
    strategy = training.strategy

    @tf.function
    def total() -> tf.Tensor:
        value = strategy.run(lambda: tf.constant(float(training.rank + 1)))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)

    tell(rank=training.rank, world_size=training.world_size, local_rank=0, total=float(total()))


tensorflow.main(train)
