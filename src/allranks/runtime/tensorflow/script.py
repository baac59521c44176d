"""The main function of a TensorFlow script, for every task."""

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn

from allranks.contract.variables import join_seconds
from allranks.errors import InputError, Problem
from allranks.runtime import clean_exit, lifecycle
from allranks.runtime.lifecycle import TIMEOUT_SECONDS
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.tensorflow.cluster import CHIEF, Cluster, Sight, find_lost, read, wait_for_tasks, wait_until_gone
from allranks.runtime.tensorflow.strategy import (
    Training,
    limit_threads,
    parameter_server_strategy,
    single_process_strategy,
    start_server,
    worker_strategy,
)

_NOTICE = b"evicted\n"
_INTERVAL_SECONDS = 0.5
"""Pause between two attempts to pass on a notice, while the training has no handler of SIGTERM yet."""


def main(train: Callable[[Training], None], *, timeout_seconds: float = TIMEOUT_SECONDS) -> NoReturn:
    """Call train(training) on the tasks that train, serve on the others, and exit.

    train:           the training function
    timeout_seconds: time limit for the other tasks, at the start and in every collective

    Workers call train together. With parameter servers, only the chief calls it; workers and parameter servers serve
    it. Every task except the chief runs until the chief has ended, which counts as success, because the chief reports
    the result of the training. A SIGTERM to one of them is one to the chief.

    Exit codes: 0 success, 1 an exception (recorded with its traceback) or a task that did not start or was lost,
    2 wrong input (an InputError), 143 saved and stopped for an eviction, 130 Ctrl-C. SystemExit determines its own
    code.
    """

    def connect(ending: lifecycle.Ending) -> Callable[[], None]:
        _require_tensorflow()
        cluster = read()
        if cluster is None:
            ending.metrics = Metrics(is_main=True)
            return partial(train, Training(0, 1, "worker", True, single_process_strategy(), None, ending.metrics))
        limit_threads(cluster.local_count)
        if cluster.parameter_servers and not cluster.is_chief:
            return _connect_server(cluster, timeout_seconds)
        return partial(train, _connect_trainer(cluster, timeout_seconds, ending))

    lifecycle.run(connect)


def _connect_trainer(cluster: Cluster, timeout_seconds: float, ending: lifecycle.Ending) -> Training:
    """Connect a task that calls the training function."""
    connections = wait_for_tasks(cluster, join_seconds(os.environ, timeout_seconds))
    if cluster.parameter_servers:
        # Treat the first notice of a server as a SIGTERM to this process.
        servers = list(connections.values())
        threading.Thread(target=_receive, args=(servers,), name="allranks-eviction", daemon=True).start()
    ending.metrics = Metrics(is_main=cluster.is_chief)
    # The chief watches all others, and they watch the chief.
    watched = cluster.others if cluster.is_chief else {CHIEF: cluster.chief_endpoint}
    sights = [Sight(name, endpoint) for name, endpoint in watched.items()]
    ending.watch_for(lambda: find_lost(sights, timeout_seconds))
    training = _create_training(cluster, ending.metrics, timeout_seconds)
    if training.coordinator is None:
        ending.wait = partial(_final_barrier, training)

    def disconnect(code: int) -> None:
        if code == 0 and not cluster.is_chief:
            wait_until_gone(CHIEF, cluster.chief_endpoint, timeout_seconds)
        for connection in connections.values():  # open until here: servers take the end of theirs for the chief's
            connection.close()

    ending.disconnect = disconnect
    return training


def _create_training(cluster: Cluster, metrics: Metrics, timeout_seconds: float) -> Training:
    import tensorflow as tf  # takes seconds, and is checked before

    world_size = len(cluster.trainers)
    if cluster.parameter_servers:
        strategy = parameter_server_strategy(cluster)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        return Training(0, world_size, cluster.role, True, strategy, coordinator, metrics)
    rank = cluster.trainers.index((cluster.role, cluster.index))
    strategy = worker_strategy(cluster, timeout_seconds)
    return Training(rank, world_size, cluster.role, cluster.is_chief, strategy, None, metrics)


def _connect_server(cluster: Cluster, timeout_seconds: float) -> Callable[[], None]:
    """Connect a worker or parameter server that serves the chief. A SIGTERM notifies the chief, which saves its
    variables."""
    signal.signal(signal.SIGTERM, _exit_successfully)
    (chief,) = wait_for_tasks(cluster, join_seconds(os.environ, timeout_seconds)).values()

    def notify(_number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # the chief has ended, for which this process waits
            chief.sendall(_NOTICE)

    def serve() -> None:
        server = start_server(cluster)
        # Not the server's `join`, during which Python cannot run signal handlers.
        wait_until_gone(CHIEF, cluster.chief_endpoint, timeout_seconds, chief)
        del server

    signal.signal(signal.SIGTERM, notify)
    return serve


def _final_barrier(training: Training) -> None:
    """Wait for the other workers at the end, so that a worker that finishes early does not count as lost."""
    import tensorflow as tf  # takes seconds, and is checked before

    if not training.is_main:
        signal.signal(signal.SIGTERM, _exit_successfully)
    training.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0), axis=None)


def _exit_successfully(_number: int, _frame: FrameType | None) -> NoReturn:
    clean_exit.leave_now(0)


def _require_tensorflow() -> None:
    if find_spec("tensorflow") is None:
        expected = "an environment with TensorFlow, which does not share its packages with torch"
        fix = "in the project: make tensorflow. Elsewhere: pip install 'allranks[tensorflow]'"
        raise InputError(Problem(sys.executable, "no TensorFlow", expected, fix))


def _receive(servers: list[socket.socket]) -> None:
    """Wait for a notice of a server, and pass it on as a SIGTERM once the training handles SIGTERM."""
    while servers:
        for server in select.select(servers, [], [])[0]:
            try:
                received = server.recv(len(_NOTICE))
            except OSError:
                received = b""
            if received:
                pause = threading.Event()
                while not callable(signal.getsignal(signal.SIGTERM)):  # the signal would end this process
                    pause.wait(_INTERVAL_SECONDS)
                os.kill(os.getpid(), signal.SIGTERM)
                return
            servers.remove(server)  # it has ended: the watch says so
