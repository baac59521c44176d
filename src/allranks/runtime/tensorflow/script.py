"""The main function of a TensorFlow script, for every task."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn, TypeAlias

from allranks.contract.own_variables import join_seconds
from allranks.errors import InputError, Problem
from allranks.runtime.exit import clean_exit, failure
from allranks.runtime.exit.eviction import EVICTED
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.notes import note
from allranks.runtime.tensorflow import strategy
from allranks.runtime.tensorflow.cluster import EVALUATOR, Cluster, read
from allranks.runtime.tensorflow.roll_call import roll_call
from allranks.runtime.tensorflow.training import Training
from allranks.runtime.tensorflow.watch import Watch, wait_until_gone

TIMEOUT_SECONDS = 600.0
"""How long a task waits for the others. TensorFlow itself would wait for ever."""

CHIEF = "the chief"

_STATUS = {0: "FINISHED", EVICTED: "KILLED", failure.INTERRUPTED: "KILLED"}

Script: TypeAlias = Callable[[Training], None]
_NOTICE = b"evicted\n"
_INTERVAL_SECONDS = 0.5
"""Pause between two attempts to pass on a notice, while the training has no handler of SIGTERM yet."""


def main(train: Script, *, evaluate: Script | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> NoReturn:
    """Call train(training) on the tasks that train, serve on the others, and exit.

    train:           the training function
    evaluate:        the function of the evaluator in a TF_CONFIG, a separate process beside the training
    timeout_seconds: how long a task waits for the others, at the start and in every collective

    Workers call train together. With parameter servers, only the chief calls it; workers and parameter servers serve
    it. Every task except the chief runs until the chief has ended, which counts as success, because the chief reports
    the result of the training. A SIGTERM to one of them is one to the chief.

    Exit codes: 0 success, 1 an exception (recorded with its traceback) or a task that did not start or was lost,
    2 wrong input (an InputError), 143 saved and stopped for an eviction, 130 Ctrl-C. SystemExit determines its own
    code.
    """
    try:
        _require_tensorflow()
        cluster = read()
        strategy.share_cores(cluster)
        if cluster is None:
            code = _run_alone(train, "worker")
        elif cluster.role == EVALUATOR:
            code = _run_alone(evaluate or _no_evaluation, EVALUATOR)
        elif cluster.parameter_servers and not cluster.is_chief:
            code = _serve(cluster, timeout_seconds)
        else:
            code = _train_together(train, cluster, timeout_seconds)
    except BaseException as error:
        code = failure.record(error)
    clean_exit.leave(code)


def _run_alone(script: Script, role: str) -> int:
    metrics = Metrics(is_main=True)
    try:
        script(Training(0, 1, role, True, strategy.alone(), None, metrics))
        code = 0
    except BaseException as error:
        code = failure.record(error)
    metrics.close(_STATUS.get(code, "FAILED"))
    return code


def _train_together(train: Script, cluster: Cluster, timeout_seconds: float) -> int:
    connections = roll_call(cluster, join_seconds(os.environ, timeout_seconds))
    if cluster.parameter_servers:
        _receive_notices(connections.values())
    metrics = Metrics(is_main=cluster.is_chief)

    def end_process(error: ConnectionError) -> None:
        code = failure.record(error)
        metrics.close("FAILED")
        _exit(code)

    watch = Watch(_watched_tasks(cluster), timeout_seconds=timeout_seconds, lost=end_process)
    training = None
    try:
        training = _create_training(cluster, metrics, timeout_seconds)
        train(training)
        if training.coordinator is None:
            _final_barrier(training)
        code = 0
    except BaseException as error:
        watch.stop()
        code = failure.record(error)
        if code == EVICTED and training is not None and training.coordinator is None:
            _final_barrier(training)  # every worker ends so, at the same step, and may still be saving
    else:
        watch.stop()
    metrics.close(_STATUS.get(code, "FAILED"))
    if code == 0 and not cluster.is_chief:
        wait_until_gone(CHIEF, cluster.endpoint(cluster.chief), timeout_seconds)
    return code


def _create_training(cluster: Cluster, metrics: Metrics, timeout_seconds: float) -> Training:
    import tensorflow as tf

    world_size = len(cluster.trainers)
    if cluster.parameter_servers:
        server_strategy = strategy.parameter_servers(cluster)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(server_strategy)
        return Training(0, world_size, cluster.role, True, server_strategy, coordinator, metrics)
    rank = cluster.trainers.index((cluster.role, cluster.index))
    worker_strategy = strategy.workers(cluster, timeout_seconds)
    return Training(rank, world_size, cluster.role, cluster.is_chief, worker_strategy, None, metrics)


def _serve(cluster: Cluster, timeout_seconds: float) -> int:
    signal.signal(signal.SIGTERM, _exit_successfully)
    (chief,) = roll_call(cluster, join_seconds(os.environ, timeout_seconds)).values()
    _send_on_sigterm(chief)
    server = strategy.server(cluster)
    # Not the server's `join`, during which Python cannot run signal handlers.
    wait_until_gone(CHIEF, cluster.endpoint(cluster.chief), timeout_seconds, chief)
    del server
    return 0


def _final_barrier(training: Training) -> None:
    """Wait for the other workers at the end, so that a worker that finishes early does not count as lost."""
    import tensorflow as tf

    if not training.is_main:
        signal.signal(signal.SIGTERM, _exit_successfully)
    training.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0), axis=None)


def _watched_tasks(cluster: Cluster) -> dict[str, str]:
    """Return the tasks that this one watches: the chief watches all others, and they watch the chief."""
    if not cluster.is_chief:
        return {CHIEF: cluster.endpoint(cluster.chief)}
    return {f"{role} {index}": cluster.endpoint((role, index)) for role, index in cluster.others}


def _exit(code: int) -> NoReturn:
    """End this process from a thread or a signal handler, while its main thread may be inside TensorFlow."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _exit_successfully(_number: int, _frame: FrameType | None) -> NoReturn:
    _exit(0)


def _no_evaluation(_training: Training) -> None:
    note("this task is the evaluator, and the script has nothing for it to do")


def _require_tensorflow() -> None:
    if find_spec("tensorflow") is None:
        raise InputError(
            Problem(
                where=sys.executable,
                found="no TensorFlow",
                expected="an environment with TensorFlow, which does not share its packages with torch",
                fix="in the project: make tensorflow. Elsewhere: pip install 'allranks[tensorflow]'",
            )
        )


def _send_on_sigterm(chief: socket.socket) -> None:
    """Notify the chief when this process receives SIGTERM, and serve on: the chief saves the servers' variables."""

    def notify(_number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # the chief has ended, for which this process waits
            chief.sendall(_NOTICE)

    signal.signal(signal.SIGTERM, notify)


def _receive_notices(servers: Iterable[socket.socket]) -> None:
    """Treat the first notice of a server as a SIGTERM to this process, in a daemon thread."""
    threading.Thread(target=_receive, args=([*servers],), name="allranks-eviction", daemon=True).start()


def _receive(servers: list[socket.socket]) -> None:
    while servers:
        for server in select.select(servers, [], [])[0]:
            try:
                received = server.recv(len(_NOTICE))
            except OSError:
                received = b""
            if received:
                _pass_on()
                return
            servers.remove(server)  # it has ended: the watch says so


def _pass_on() -> None:
    pause = threading.Event()
    while not callable(signal.getsignal(signal.SIGTERM)):  # the signal would end this process
        pause.wait(_INTERVAL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
