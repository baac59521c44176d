"""TensorFlow's trainings: the strategy that TF_CONFIG asks for, metrics, failures, and an end for every task.

    from allranks.runtime import tensorflow

    def train(training: tensorflow.Training) -> None:
        with training.strategy.scope():
            ...                                # variables; then an ordinary custom training loop

    if __name__ == "__main__":
        tensorflow.main(train)

The same script is one process, a worker among others, the chief of parameter servers, or one of its servers. Needs
TensorFlow, and no torch. A Keras 3 model is trained by a loop of one's own: its `fit` fails under several workers
(keras 3.15 with tensorflow 2.21), unless tf_keras stands in for it (TF_USE_LEGACY_KERAS=1).
"""

from __future__ import annotations

from allranks.runtime.tensorflow.cluster import Cluster
from allranks.runtime.tensorflow.script import main
from allranks.runtime.tensorflow.training import Training

__all__ = ["Cluster", "Training", "main"]
