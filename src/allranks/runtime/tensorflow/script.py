"""The main of a TensorFlow script, whatever task it is."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from types import FrameType
from typing import NoReturn, TypeAlias

from allranks.errors import InputError, Problem
from allranks.runtime import clean_exit, failure
from allranks.runtime.metrics import Metrics
from allranks.runtime.notes import note
from allranks.runtime.tensorflow import strategy
from allranks.runtime.tensorflow.cluster import EVALUATOR, Cluster, read
from allranks.runtime.tensorflow.roll_call import roll_call
from allranks.runtime.tensorflow.training import Training
from allranks.runtime.tensorflow.watch import Watch, wait_until_gone

TIMEOUT_SECONDS = 600.0
"""How long a task waits for the others. TensorFlow alone would wait for ever."""

CHIEF = "the chief"

Script: TypeAlias = Callable[[Training], None]


def main(train: Script, *, evaluate: Script | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> NoReturn:
    """Call train(training) on the tasks that run it, serve on the others, and end the process.

    evaluate:        what the evaluator of a TF_CONFIG calls, which is a process on its own beside the training
    timeout_seconds: how long a task waits for the others, when they meet and in every collective

    Workers call train together. With parameter servers the chief alone does; workers and parameter servers serve it.
    Every task but the chief stays until the chief is gone or SIGTERM comes, by which a platform ends them: both are
    good ends, since what the training came to is the chief's to say.

    Exit codes: 0 done, 1 an exception (recorded with its traceback) or a task that did not come or is gone, 2 wrong
    input (an InputError), 130 Ctrl-C; SystemExit keeps its own.
    """
    try:
        _require_tensorflow()
        cluster = read()
        strategy.share_cores(cluster)
        if cluster is None:
            code = _alone(train, "worker")
        elif cluster.role == EVALUATOR:
            code = _alone(evaluate or _nothing, EVALUATOR)
        elif cluster.parameter_servers and not cluster.is_chief:
            code = _serve(cluster, timeout_seconds)
        else:
            code = _together(train, cluster, timeout_seconds)
    except BaseException as error:
        code = failure.record(error)
    clean_exit.leave(code)


def _alone(script: Script, role: str) -> int:
    metrics = Metrics(is_main=True)
    try:
        script(Training(0, 1, role, True, strategy.alone(), None, metrics))
        code = 0
    except BaseException as error:
        code = failure.record(error)
    metrics.close("FAILED" if code else "FINISHED")
    return code


def _together(train: Script, cluster: Cluster, timeout_seconds: float) -> int:
    roll_call(cluster, timeout_seconds)
    metrics = Metrics(is_main=cluster.is_chief)

    def lost(error: ConnectionError) -> None:
        code = failure.record(error)
        metrics.close("FAILED")
        _leave(code)

    watch = Watch(_watched(cluster), timeout_seconds=timeout_seconds, lost=lost)
    try:
        training = _training(cluster, metrics, timeout_seconds)
        train(training)
        if training.coordinator is None:
            _meet(training)
        code = 0
    except BaseException as error:
        watch.stop()
        code = failure.record(error)
    else:
        watch.stop()
    metrics.close("FAILED" if code else "FINISHED")
    if code == 0 and not cluster.is_chief:
        wait_until_gone(CHIEF, cluster.endpoint(cluster.chief), timeout_seconds)
    return code


def _training(cluster: Cluster, metrics: Metrics, timeout_seconds: float) -> Training:
    import tensorflow as tf

    world_size = len(cluster.trainers)
    if cluster.parameter_servers:
        servers = strategy.parameter_servers(cluster)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(servers)
        return Training(0, world_size, cluster.role, True, servers, coordinator, metrics)
    rank = cluster.trainers.index((cluster.role, cluster.index))
    workers = strategy.workers(cluster, timeout_seconds)
    return Training(rank, world_size, cluster.role, cluster.is_chief, workers, None, metrics)


def _serve(cluster: Cluster, timeout_seconds: float) -> int:
    # Not the server's own `join`: Python could not run the handler of a signal meanwhile.
    signal.signal(signal.SIGTERM, _leave_well)
    roll_call(cluster, timeout_seconds)
    server = strategy.server(cluster)
    wait_until_gone(CHIEF, cluster.endpoint(cluster.chief), timeout_seconds)
    del server
    return 0


def _meet(training: Training) -> None:
    """Wait for the other workers at the end, so that none misses one that is done already."""
    import tensorflow as tf

    if not training.is_main:
        signal.signal(signal.SIGTERM, _leave_well)  # from now on it is a good end
    training.strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0), axis=None)


def _watched(cluster: Cluster) -> dict[str, str]:
    """Return the tasks that this one must not lose: the chief looks after all the others, and they after the chief."""
    if not cluster.is_chief:
        return {CHIEF: cluster.endpoint(cluster.chief)}
    return {f"{role} {index}": cluster.endpoint((role, index)) for role, index in cluster.others}


def _leave(code: int) -> NoReturn:
    """End this process from a thread or a signal's handler, while its main thread may be inside TensorFlow."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _leave_well(_number: int, _frame: FrameType | None) -> NoReturn:
    _leave(0)


def _nothing(_training: Training) -> None:
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
