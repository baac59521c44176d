"""TensorFlow trainings: the strategy for TF_CONFIG, metrics, failure records, and the exit of every task.

    from allranks.runtime import tensorflow

    def train(training: tensorflow.Training) -> None:
        with training.strategy.scope():
            ...                                # variables; then an ordinary custom training loop

    if __name__ == "__main__":
        tensorflow.main(train)

The same script runs as a single process, a worker, a chief with parameter servers, or a parameter server. It needs
TensorFlow, but not torch. Train a Keras 3 model with a custom loop: its `fit` fails with several workers (keras 3.15
with tensorflow 2.21), unless tf_keras replaces Keras 3 (TF_USE_LEGACY_KERAS=1).
"""

from allranks.runtime.tensorflow.cluster import Cluster
from allranks.runtime.tensorflow.script import main
from allranks.runtime.tensorflow.strategy import Training

__all__ = ["Cluster", "Training", "main"]
