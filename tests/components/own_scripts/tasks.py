"""A script for TensorFlow: the workers add up their numbers, as the strategy reduces them."""

import json
import os
import sys
from pathlib import Path

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
task = json.loads(os.environ["TF_CONFIG"])["task"]


@tf.function
def total():
    value = strategy.run(lambda: tf.constant(float(task["index"] + 1)))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)


text = " ".join([str(int(total())), *sys.argv[1:]])
results = Path(os.environ["AZURE_ML_OUTPUT_results"])  # noqa: SIM112 - as Azure ML spells it
results.mkdir(parents=True, exist_ok=True)
(results / f"{task['index']}.txt").write_text(text)
