"""Train an image classifier with TensorFlow, on all workers of a launch or in one process."""

from __future__ import annotations

from loop import train
from parameters import arguments
from replicas import MirroredReplicas

from allranks.runtime import tensorflow


def main(training: tensorflow.Training) -> None:
    args = arguments()
    train(MirroredReplicas(training), args)


if __name__ == "__main__":
    tensorflow.main(main)
