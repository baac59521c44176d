"""The devices that share a training, under a tf.distribute strategy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from allranks.runtime import tensorflow
from allranks.runtime.metrics import Metrics

LONGEST = 16_384
"""Bytes of the longest value that is broadcast."""


class Replicas(Protocol):
    """Devices that compute the same step on other images. Every process must make the same calls.

    name:         of the strategy
    saves_alone:  whether saving a checkpoint is the main process's alone, and no collective
    count:        replicas of all processes
    rank, world_size, is_main: of this process
    launcher:     what started the processes
    """

    name: str
    saves_alone: bool
    count: int
    rank: int
    world_size: int
    is_main: bool
    launcher: str
    strategy: Any
    metrics: Metrics

    def iterate(self, dataset: Callable[[Sequence[int]], tf.data.Dataset]) -> Any:
        """Return an iterator over the batches that `dataset` makes for this process's replicas."""

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Call the function on each replica, within a tf.function. Return what each returns."""

    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        """Return gradients added up over the replicas. Call it on a replica."""

    def total(self, values: Any) -> Any:
        """Return values added up over the replicas. values: what `run` has returned"""

    def broadcast(self, value: Any) -> Any:
        """Return the main process's value. value: what JSON can hold, up to some kilobytes"""

    def wait_for_all(self) -> None:
        """Wait until every process has called this."""

    def start_alike(self, variables: Sequence[Any]) -> None:
        """Give the variables the main process's values."""


class MirroredReplicas:
    """The replicas of MultiWorkerMirroredStrategy, of MirroredStrategy, or of one device."""

    name = "mirrored"
    saves_alone = False

    def __init__(self, training: tensorflow.Training) -> None:
        self.strategy = training.strategy
        self.count = int(training.strategy.num_replicas_in_sync)
        self.rank, self.world_size, self.is_main = training.rank, training.world_size, training.is_main
        self.launcher = "tensorflow" if training.world_size > 1 else "none"
        self.metrics = training.metrics

    def iterate(self, dataset: Callable[[Sequence[int]], tf.data.Dataset]) -> Any:
        own = self.count // self.world_size

        def of_worker(_context: tf.distribute.InputContext) -> tf.data.Dataset:
            return dataset(range(self.rank * own, (self.rank + 1) * own))

        return iter(self.strategy.distribute_datasets_from_function(of_worker))

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return self.strategy.run(function, args=arguments)

    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)

    def total(self, values: Any) -> Any:
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)

    def broadcast(self, value: Any) -> Any:
        if self.world_size == 1:
            return value
        total = self._total_of_replicas(_encoded(value if self.is_main else None))
        return _decoded(total, self.count // self.world_size)

    def wait_for_all(self) -> None:
        if self.world_size > 1:
            self._total_of_replicas(tf.constant(1.0))

    def _total_of_replicas(self, own: tf.Tensor) -> tf.Tensor:
        """Return the sum over all replicas. own: the value of each replica of this process"""
        return self.total(self.strategy.experimental_distribute_values_from_function(lambda _: own))

    def start_alike(self, variables: Sequence[Any]) -> None:
        """The strategy has done so when it made the variables."""


class HorovodReplicas:
    """The ranks of Horovod, each with one device."""

    name = "horovod"
    saves_alone = True

    def __init__(self, training: tensorflow.Training) -> None:
        self.strategy = training.strategy
        self.count = self.world_size = training.world_size
        self.rank, self.is_main = training.rank, training.is_main
        self.launcher = "mpi" if training.world_size > 1 else "none"
        self.metrics = training.metrics

    def iterate(self, dataset: Callable[[Sequence[int]], tf.data.Dataset]) -> Any:
        return iter(dataset([self.rank]))

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return function(*arguments)

    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        import horovod.tensorflow as hvd

        return list(hvd.grouped_allreduce(gradients, op=hvd.Sum))

    def total(self, values: Any) -> Any:
        import horovod.tensorflow as hvd

        return hvd.allreduce(values, op=hvd.Sum)

    def broadcast(self, value: Any) -> Any:
        return _decoded(self.total(_encoded(value if self.is_main else None)))

    def wait_for_all(self) -> None:
        self.total(tf.constant(1.0))

    def start_alike(self, variables: Sequence[Any]) -> None:
        import horovod.tensorflow as hvd

        hvd.broadcast_variables(variables, root_rank=0)


def _encoded(value: Any) -> tf.Tensor:
    """Return a value's JSON as numbers, or zeros for None: the sum over the processes is the one value."""
    text = json.dumps(value).encode() if value is not None else b""
    if len(text) > LONGEST:
        raise ValueError(f"a value of {len(text)} bytes is too long to broadcast, of at most {LONGEST}")
    return tf.constant([*text, *[0] * (LONGEST - len(text))], tf.int32)


def _decoded(total: tf.Tensor, times: int = 1) -> Any:
    """Return the value. times: how often it is in the sum"""
    return json.loads(bytes(number // times for number in total.numpy().tolist()).rstrip(b"\0"))
