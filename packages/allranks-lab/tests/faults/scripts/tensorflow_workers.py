"""A training by TensorFlow's MultiWorkerMirroredStrategy."""

import json
import os

import sabotage

config = json.loads(os.environ["TF_CONFIG"])
rank = config["task"]["index"]
sabotage.strike("start", rank)
if sabotage.master():
    config["cluster"]["worker"][0] = f"{sabotage.master()}:2222"
workers = config["cluster"]["worker"]
workers += [f"{workers[0].partition(':')[0]}:2299"] * (sabotage.world_size(len(workers), rank) - len(workers))
os.environ["TF_CONFIG"] = json.dumps(config)

import tensorflow as tf

if "TIME_OUT" in os.environ:
    # Of the check, of which it takes several, whether the other workers are there.
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended as Extended

    Extended._check_health_interval = Extended._check_health_timeout = 2
strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def total(value):
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: value), axis=None)


for step in range(sabotage.STEPS):
    sabotage.strike("before", rank, step)
    total(tf.ones(4))
    sabotage.strike("between", rank, step)
    value = tf.ones(1 + sabotage.strange("shape", rank, step))
    if sabotage.strange("type", rank, step):
        value = tf.cast(value, tf.float64)
    total(value)
sabotage.strike("after", rank)
total(tf.ones(2))
