"""The tf.distribute strategy of a cluster."""

from __future__ import annotations

import os
from typing import Any

from allranks.runtime.tensorflow.cluster import Cluster


def share_cores(cluster: Cluster | None) -> None:
    """Give this task its share of the cores: every task would otherwise take them all. Before TensorFlow computes."""
    import tensorflow as tf

    if cluster is not None and cluster.local_count > 1:
        share = max(1, len(os.sched_getaffinity(0)) // cluster.local_count)
        tf.config.threading.set_intra_op_parallelism_threads(share)


def alone() -> Any:
    """Return the strategy of one process: MirroredStrategy where it has several GPUs, else TensorFlow's default."""
    import tensorflow as tf

    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def workers(cluster: Cluster, timeout_seconds: float) -> Any:
    """MultiWorkerMirroredStrategy: every worker holds the variables, gradients are summed over all of them.

    timeout_seconds bounds every collective. On CPUs they go round in a ring: NCCL, the other way, needs GPUs.
    """
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    kinds = tf.distribute.experimental.CommunicationImplementation
    return tf.distribute.MultiWorkerMirroredStrategy(
        cluster_resolver=_resolver(cluster),
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=kinds.AUTO if gpus else kinds.RING, timeout_seconds=timeout_seconds
        ),
    )


def parameter_servers(cluster: Cluster) -> Any:
    """ParameterServerStrategy, on the chief: it connects to every server, and waits for each."""
    import tensorflow as tf

    return tf.distribute.ParameterServerStrategy(_resolver(cluster))


def server(cluster: Cluster) -> Any:
    """Return a worker or a parameter server, listening: it does what the chief tells it."""
    import tensorflow as tf

    return tf.distribute.Server(
        tf.train.ClusterSpec(_plain(cluster)), job_name=cluster.role, task_index=cluster.index, protocol="grpc"
    )


def _resolver(cluster: Cluster) -> Any:
    import tensorflow as tf

    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(_plain(cluster)), task_type=cluster.role, task_id=cluster.index, rpc_layer="grpc"
    )


def _plain(cluster: Cluster) -> dict[str, list[str]]:
    return {role: list(endpoints) for role, endpoints in cluster.tasks.items()}
