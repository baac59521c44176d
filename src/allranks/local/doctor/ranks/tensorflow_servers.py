"""TensorFlow's parameter servers: the chief makes the workers add to a variable that a server stores.

The chief does not train, so the world has one worker less than there are instances. Only the chief prints its place.
"""

import tensorflow as tf
from place import tell

from allranks.runtime import tensorflow


def train(training: tensorflow.Training) -> None:
    total = 0.0
    if training.coordinator is None:
        total = 1.0
    else:
        with training.strategy.scope():
            variable = tf.Variable(0.0)

        @tf.function
        def add() -> None:
            variable.assign_add(1.0)

        training.coordinator.schedule(add)
        training.coordinator.join()
        total = float(variable.read_value())
    tell(rank=training.rank, world_size=training.world_size, local_rank=0, total=total)


tensorflow.main(train)
