"""The tf.distribute strategy of a cluster."""

from __future__ import annotations

import os
from typing import Any

from allranks.runtime.tensorflow.cluster import Cluster


def share_cores(cluster: Cluster | None) -> None:
    """Limit this task to its share of the cores, because by default every task uses all of them.

    Must be called before TensorFlow computes.
    """
    if cluster is not None:
        limit_threads(cluster.local_count)


def limit_threads(local_count: int) -> None:
    """Limit this process to its share of the cores. local_count: processes that share them"""
    import tensorflow as tf

    if local_count > 1:
        tf.config.threading.set_intra_op_parallelism_threads(max(1, len(os.sched_getaffinity(0)) // local_count))


def alone() -> Any:
    """Return the strategy of one process: MirroredStrategy if it has several GPUs, else TensorFlow's default."""
    import tensorflow as tf

    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def workers(cluster: Cluster, timeout_seconds: float) -> Any:
    """Return MultiWorkerMirroredStrategy: every worker has the variables, and gradients are summed over the workers.

    timeout_seconds: time-out of every collective

    Without GPUs, the collectives use a ring: the alternative, NCCL, needs GPUs.
    """
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    implementations = tf.distribute.experimental.CommunicationImplementation
    return tf.distribute.MultiWorkerMirroredStrategy(
        cluster_resolver=_resolver(cluster),
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=implementations.AUTO if gpus else implementations.RING, timeout_seconds=timeout_seconds
        ),
    )


def parameter_servers(cluster: Cluster) -> Any:
    """Return ParameterServerStrategy for the chief. Its constructor waits until it is connected to every server."""
    import tensorflow as tf

    return tf.distribute.ParameterServerStrategy(_resolver(cluster))


def server(cluster: Cluster) -> Any:
    """Return a listening worker or parameter server, which executes the chief's requests."""
    import tensorflow as tf

    return tf.distribute.Server(
        tf.train.ClusterSpec(_spec(cluster)), job_name=cluster.role, task_index=cluster.index, protocol="grpc"
    )


def _resolver(cluster: Cluster) -> Any:
    import tensorflow as tf

    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(_spec(cluster)), task_type=cluster.role, task_id=cluster.index, rpc_layer="grpc"
    )


def _spec(cluster: Cluster) -> dict[str, list[str]]:
    return {role: list(endpoints) for role, endpoints in cluster.tasks.items()}
