"""The argument of a TensorFlow training function, and its tf.distribute strategy."""

import os
from dataclasses import dataclass
from typing import Any

from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.tensorflow.cluster import Cluster


@dataclass(frozen=True)
class Training:
    """The task of this process, and the objects that it trains with.

    rank, world_size: number of this task among the tasks that train, and number of those tasks. With parameter servers,
                      the chief runs the loop for all of them: it is rank 0, and world_size is the number of workers
    role:             worker or chief; a parameter server does not call the training function
    strategy:         the tf.distribute strategy; create variables in its scope
    coordinator:      the ClusterCoordinator that schedules steps on the workers; None without parameter servers
    metrics:          logs the chief's metrics
    """

    rank: int
    world_size: int
    role: str
    is_main: bool
    strategy: Any
    coordinator: Any
    metrics: Metrics


def limit_threads(local_count: int) -> None:
    """Limit this process to its share of the cores, because by default every process uses all of them. Must be called
    before TensorFlow computes. local_count: number of processes that share them"""
    if local_count > 1:
        import tensorflow as tf  # takes seconds, and scripts that wait for the cluster do not need it

        tf.config.threading.set_intra_op_parallelism_threads(max(1, len(os.sched_getaffinity(0)) // local_count))


def single_process_strategy() -> Any:
    """Return the strategy of one process: MirroredStrategy if it has several GPUs, else TensorFlow's default."""
    import tensorflow as tf  # takes seconds, and scripts that wait for the cluster do not need it

    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def worker_strategy(cluster: Cluster, timeout_seconds: float) -> Any:
    """Return MultiWorkerMirroredStrategy: every worker has the variables, and gradients are summed over the workers.

    timeout_seconds: time-out of every collective

    Without GPUs, the collectives use a ring: the alternative, NCCL, needs GPUs.
    """
    import tensorflow as tf  # takes seconds, and scripts that wait for the cluster do not need it

    gpus = tf.config.list_physical_devices("GPU")
    implementations = tf.distribute.experimental.CommunicationImplementation
    return tf.distribute.MultiWorkerMirroredStrategy(
        cluster_resolver=_resolver(cluster),
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=implementations.AUTO if gpus else implementations.RING, timeout_seconds=timeout_seconds
        ),
    )


def parameter_server_strategy(cluster: Cluster) -> Any:
    """Return ParameterServerStrategy for the chief. Its constructor waits until it is connected to every server."""
    import tensorflow as tf  # takes seconds, and scripts that wait for the cluster do not need it

    return tf.distribute.ParameterServerStrategy(_resolver(cluster))


def start_server(cluster: Cluster) -> Any:
    """Return a listening worker or parameter server, which executes the chief's requests."""
    import tensorflow as tf  # takes seconds, and scripts that wait for the cluster do not need it

    return tf.distribute.Server(
        tf.train.ClusterSpec(_spec(cluster)), job_name=cluster.role, task_index=cluster.index, protocol="grpc"
    )


def _resolver(cluster: Cluster) -> Any:
    import tensorflow as tf  # takes seconds, and scripts that wait for the cluster do not need it

    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(_spec(cluster)), task_type=cluster.role, task_id=cluster.index, rpc_layer="grpc"
    )


def _spec(cluster: Cluster) -> dict[str, list[str]]:
    return {role: list(endpoints) for role, endpoints in cluster.tasks.items()}
