"""Train an image classifier with TensorFlow and Horovod, on all ranks that mpirun has started or in one process."""

from loop import train
from replicas import HorovodReplicas

from allranks import runtime
from allranks.runtime.tensorflow import Training, horovod


def main(training: Training) -> None:
    train(HorovodReplicas(training), runtime.arguments())


if __name__ == "__main__":
    horovod.main(main)
