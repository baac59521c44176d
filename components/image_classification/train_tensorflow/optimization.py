"""The optimizer: AdamW for gradients that are summed over the replicas, its learning rate, and its precision."""

from argparse import Namespace
from typing import Any

import keras
import tensorflow as tf

from allranks_steps.schedule import Schedule

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
"""Keras' policy for each precision. The weights stay float32."""

BFLOAT16_CAPABILITY = (8, 0)
"""The compute capability from which NVIDIA's GPUs compute in bfloat16 (CUDA C++ Programming Guide, "Arithmetic
Instructions")."""

KERAS_3 = int(keras.__version__.partition(".")[0]) >= 3


def automatic(*, scales_loss: bool = True) -> str:
    """Return the precision that "auto" stands for in this process.

    bfloat16 on GPUs that compute in it, float16 on older ones (V100, T4), float32 on the CPU, and on older GPUs if the
    training does not scale the loss.
    """
    gpus = tf.config.list_physical_devices("GPU")
    capability = tf.config.experimental.get_device_details(gpus[0]).get("compute_capability") if gpus else None
    if capability is None:
        return "float32"
    if capability >= BFLOAT16_CAPABILITY:
        return "bfloat16"
    return "float16" if scales_loss else "float32"


def set_precision(args: Namespace, *, scales_loss: bool = True) -> None:
    """Set the precision of new models to the input `precision`, and resolve "auto"."""
    if args.precision == "auto":
        args.precision = automatic(scales_loss=scales_loss)
    keras.mixed_precision.set_global_policy(POLICIES[args.precision])


class Rates(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]  # Keras has no types
    """The learning rate of each step, from a table, since a graph cannot call Python."""

    def __init__(self, rates: list[float]) -> None:
        self.rates = rates

    def __call__(self, step: Any) -> Any:
        """Return the rate of a step, from 0."""
        return tf.gather(tf.constant(self.rates, tf.float32), tf.minimum(tf.cast(step, tf.int32), len(self.rates) - 1))

    def get_config(self) -> dict[str, Any]:
        return {"rates": self.rates}


class SummedAdamW(keras.optimizers.AdamW):  # type: ignore[misc]  # Keras has no types
    """AdamW for gradients that are summed over the replicas already.

    Keras 3 would add them up itself, but after it has clipped them: a replica's gradient instead of the batch's.
    """

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        return list(grads_and_vars)


def make(args: Namespace, variables: list[Any], total: int) -> Any:
    """Return the optimizer of these variables. Call it in the strategy's scope, in which it creates its variables."""
    schedule = Schedule(args.lr_scheduler_type, total, args.warmup_steps or round(args.warmup_ratio * total))
    optimizer: Any = SummedAdamW(
        Rates([args.learning_rate * schedule.factor(step) for step in range(total)]),
        weight_decay=args.weight_decay,
        global_clipnorm=args.max_grad_norm or None,
    )
    # As in the other trainings, biases and normalisation weights do not decay.
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    if args.precision == "float16":
        scaling = keras.optimizers.LossScaleOptimizer if KERAS_3 else keras.mixed_precision.LossScaleOptimizer
        optimizer = scaling(optimizer)
    optimizer.build(variables)
    return optimizer


def scaled(optimizer: Any, loss: Any) -> Any:
    """Return the loss to differentiate, which is larger in float16 so that small gradients do not become 0."""
    if KERAS_3:
        return optimizer.scale_loss(loss)
    return optimizer.get_scaled_loss(loss) if hasattr(optimizer, "get_scaled_loss") else loss


def apply(optimizer: Any, gradients: list[Any], variables: list[Any]) -> None:
    """Change the variables. gradients: of the scaled loss, summed over the replicas"""
    if not KERAS_3 and hasattr(optimizer, "get_unscaled_gradients"):
        gradients = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(list(zip(gradients, variables, strict=True)))


def learning_rate(optimizer: Any, step: int) -> float:
    """Return the rate of a step, from 0."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return float(inner._learning_rate(step))
