"""The devices that share a training, under a tf.distribute strategy."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from allranks.runtime.tensorflow import Training


class Replicas(ABC):
    """Devices that compute the same step on different images. Every process must make the same calls.

    name:         of the strategy
    saves_alone:  whether only the main process saves a checkpoint; otherwise saving is a collective
    count:        replicas of all processes
    rank, world_size, is_main: of this process
    launcher:     what started the processes
    """

    name: str
    saves_alone: bool

    def __init__(self, training: Training, count: int, launcher: str) -> None:
        self.strategy, self.metrics, self.count = training.strategy, training.metrics, count
        self.rank, self.world_size, self.is_main = training.rank, training.world_size, training.is_main
        self.launcher = launcher if training.world_size > 1 else "none"

    @abstractmethod
    def iterate(self, dataset: Callable[[Sequence[int]], tf.data.Dataset]) -> Any:
        """Return an iterator over the batches that `dataset` makes for this process's replicas."""

    @abstractmethod
    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Call the function on each replica, within a tf.function. Return what each returns."""

    @abstractmethod
    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        """Return the sum of gradients over the replicas. Call it on a replica."""

    @abstractmethod
    def total(self, values: Any) -> Any:
        """Return the sum of values over the replicas. values: the result of `run`"""

    @abstractmethod
    def broadcast_variables(self, variables: Sequence[Any]) -> None:
        """Set the variables to the main process's values."""

    def wait_for_all(self) -> None:
        """Wait until every process has called this."""
        if self.world_size > 1:
            self._total_of_processes(tf.constant(1.0))

    def _total_of_processes(self, own: tf.Tensor) -> tf.Tensor:
        """Return the sum over all replicas. own: the value of each replica of this process"""
        return self.total(own)


class MirroredReplicas(Replicas):
    """The replicas of MultiWorkerMirroredStrategy, of MirroredStrategy, or of one device."""

    name = "mirrored"
    saves_alone = False

    def __init__(self, training: Training) -> None:
        super().__init__(training, int(training.strategy.num_replicas_in_sync), "tensorflow")

    def iterate(self, dataset: Callable[[Sequence[int]], tf.data.Dataset]) -> Any:
        own = self.count // self.world_size

        def of_worker(_context: tf.distribute.InputContext) -> tf.data.Dataset:
            return dataset(range(self.rank * own, (self.rank + 1) * own))

        return iter(self.strategy.distribute_datasets_from_function(of_worker))

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return self.strategy.run(function, args=arguments)

    def sum_gradients(self, gradients: list[Any]) -> list[Any]:
        return list(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients))

    def total(self, values: Any) -> Any:
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)

    def broadcast_variables(self, variables: Sequence[Any]) -> None:
        """Do nothing: the strategy creates equal variables."""

    def _total_of_processes(self, own: tf.Tensor) -> tf.Tensor:
        return self.total(self.strategy.experimental_distribute_values_from_function(lambda _: own))


class HorovodReplicas(Replicas):
    """The ranks of Horovod, each with one device."""

    name = "horovod"
    saves_alone = True

    def __init__(self, training: Training) -> None:
        super().__init__(training, training.world_size, "mpi")

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

    def broadcast_variables(self, variables: Sequence[Any]) -> None:
        import horovod.tensorflow as hvd

        hvd.broadcast_variables(variables, root_rank=0)
