"""A sum over all ranks by Horovod's all-reduce of TensorFlow's tensors."""

import horovod.tensorflow as hvd
import tensorflow as tf
from place import tell

from allranks.runtime.tensorflow import Training, horovod


def train(training: Training) -> None:
    total = hvd.allreduce(tf.constant(float(training.rank + 1)), op=hvd.Sum)
    tell(rank=hvd.rank(), world_size=hvd.size(), local_rank=hvd.local_rank(), total=float(total))


horovod.main(train)
