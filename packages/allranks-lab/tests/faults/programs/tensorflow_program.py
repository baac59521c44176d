"""Trainings by TensorFlow's MultiWorkerMirroredStrategy, each broken in one way: the argument is its name."""

import json
import os
import sys

config = json.loads(os.environ["TF_CONFIG"])
rank = config["task"]["index"]
if sys.argv[1] == "index_of_another" and rank == 1:
    config["task"]["index"] = 0
    os.environ["TF_CONFIG"] = json.dumps(config)

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def total(value):
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: value), axis=None)


def uneven_batches():
    for _ in range(3 if rank == 1 else 5):
        total(tf.ones(4))


def bad_record():
    def records():
        for number in range(5):
            if rank == 1 and number == 3:
                raise ValueError("record 3 is damaged")
            yield [float(number)]

    for record in tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec((1,))):
        total(record)


def index_of_another():
    total(tf.ones(4))


globals()[sys.argv[1]]()
