"""Train an image classifier with TensorFlow, on all workers of a launch or in one process."""

from loop import train
from replicas import MirroredReplicas

from allranks import runtime
from allranks.runtime import tensorflow


def main(training: tensorflow.Training) -> None:
    train(MirroredReplicas(training), runtime.arguments())


if __name__ == "__main__":
    tensorflow.main(main)
